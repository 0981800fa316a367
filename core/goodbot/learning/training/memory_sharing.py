# SPDX-License-Identifier: Apache-2.0
"""One memory, two tenants: where the model that answers stays while a training runs.

*together*: both fit. *turns*: the server gives its memory back, questions wait, and it comes back
whatever becomes of the training. *elsewhere*: it answers on another machine or GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from goodbot.api.sentences import Reason, because, in_words, words
from goodbot.api.server import Server
from goodbot.base.errors import GoodbotError, boundary, message_of
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import said_by
from goodbot.learning.core import Core
from goodbot.learning.training import memory_estimate, unavailability
from goodbot.learning.training.memory_estimate import Peaks
from goodbot.store import runs

logger = logging.getLogger(__name__)

_LOOKS_BACK = 5
"""Runs whose time tells how long the next one takes."""


ComeBack = Callable[[], Awaitable[None]]


class Sharing(StrEnum):
    """How the two share the memory; also the words of `[serving] memory`, beside `auto`."""

    TOGETHER = "together"
    TURNS = "turns"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How a training and the server share the memory; `why` is a sentence of English."""

    sharing: Sharing
    why: str
    peaks: Peaks
    said: tuple[Reason, ...]
    """`why` as it is told in every language."""

    @classmethod
    def of(cls, sharing: Sharing, found: Peaks, *said: Reason) -> Plan:
        """A plan with these peaks, for that reason."""
        return cls(sharing=sharing, why=words(*said), peaks=found, said=said)


def choose(wanted: str, found: Peaks, *, apart: str, gives_room: bool) -> Plan:
    """What `[serving] memory` comes to. `apart`: why the server is elsewhere, as a clause; empty: it is not.

    Where not even turns would make enough room they are taken all the same: the trainer cuts its
    work to the memory that it finds, and says so if there is too little.
    """
    tight = bool(found.training) and found.training > found.room
    there = because("plan_room", room=max(0, found.room))
    asked = because("plan_asked", wanted=str(wanted))
    if wanted == Sharing.ELSEWHERE or (wanted == "auto" and apart):
        where = in_words(apart)[0] if apart else asked
        return Plan.of(Sharing.ELSEWHERE, found, because("plan_elsewhere", what=where))
    if wanted == Sharing.TURNS or (wanted == "auto" and tight):
        key = "plan_turns" if gives_room else "plan_stuck"
        sharing = Sharing.TURNS if gives_room else Sharing.TOGETHER
        what = asked if wanted == Sharing.TURNS else there
        return Plan.of(sharing, found, because(key, what=what))
    if wanted == Sharing.TOGETHER:
        return Plan.of(Sharing.TOGETHER, found, because("plan_together"))
    both = because("plan_both", what=there) if found.training else because("plan_unknown")
    return Plan.of(Sharing.TOGETHER, found, both)


class MemorySharing:
    """Makes room for trainings, and knows whether the model is away."""

    def __init__(self, core: Core) -> None:
        self._server, self._served, self._wanted = core.server, core.model.path, core.config.serving.memory
        self._url = core.config.serving.url or core.spec.url
        self._ours = not core.spec.url  # it is a process of our own
        self._backend, self._scope = core.backend.name, core.pool.scope
        self._store, self._clock = core.store, core.clock
        self.plan: Plan | None = None
        """Of the training under way, or the last one."""
        self._there = asyncio.Event()
        self._there.set()
        self._out = False
        self._returning: asyncio.Task[None] | None = None
        self.closing = False
        """Goodbot is stopping: the server need not come back."""
        self._back_at: float | None = None

    @property
    def away(self) -> bool:
        """Whether questions wait for a training that has the model's memory, or is about to."""
        return not self._there.is_set()

    async def look(self, model: Path, settings: Mapping[str, Any]) -> Plan:
        """What a training of `model` with these `[training.settings]` would come to now."""
        found, apart = await asyncio.to_thread(self._measure, model, settings)
        return choose(self._wanted, found, apart=apart, gives_room=self._gives_room)

    @contextlib.asynccontextmanager
    async def room(self, model: Path, settings: Mapping[str, Any], name: str) -> AsyncGenerator[ComeBack]:
        """Around a training of `model`, called `name`. At the end the server is back, whatever happened.

        It is let back earlier by calling what this yields: to take the new version up. Questions wait
        until the end.
        """
        plan = self.plan = await self.look(model, settings)
        logger.info("memory: %s: %s", plan.sharing, plan.why)
        try:
            if plan.sharing is Sharing.TURNS:
                await self._leave(await self._expected(model, name))
            yield self._come_back
        finally:
            end = asyncio.create_task(self._end(), name="the model is back")
            try:
                await asyncio.shield(end)
            except asyncio.CancelledError:
                await end
                raise

    async def present(self) -> None:
        """Return once questions need not wait."""
        await self._there.wait()

    def note(self) -> Reason | None:
        """What to tell somebody who asks now; None: the answer comes at once."""
        if not self.away:
            return None
        if self._back_at is None:
            return because("learning")
        minutes = math.ceil((self._back_at - self._clock.monotonic()) / 60)
        return because("learning_left", minutes=max(1, minutes))

    async def _leave(self, seconds: float) -> None:
        self._there.clear()
        self._back_at = self._clock.monotonic() + seconds if seconds else None
        with boundary(logger, "the absence of the model was not stored"):
            await self._store.write(lambda db: unavailability.begins(db, self._clock.now()))
        self._out = True
        try:
            if await self._server.make_room():
                return
            why = because("plan_not_now")
        except (GoodbotError, OSError) as error:
            why = because("plan_failed", why=said_by(error) or message_of(error))
        logger.warning("memory: %s", words(why))
        await self._end()
        if self.plan is not None:
            self.plan = Plan.of(Sharing.TOGETHER, self.plan.peaks, why)

    async def _come_back(self) -> None:
        """Who is cancelled meanwhile leaves no half of it: the next one waits for the same return."""
        if self._out:
            if self._returning is None:
                self._returning = asyncio.create_task(self._bring_back(), name="coming back")
            await asyncio.shield(self._returning)

    async def _bring_back(self) -> None:
        try:
            await self._server.come_back()
        except (GoodbotError, OSError) as error:
            logger.error("the model did not come back and is started again: %s", error)
            with boundary(logger, "the model does not start"):
                await self._server.start()
        finally:
            self._out, self._returning = False, None

    async def _end(self) -> None:
        if not self.away:
            return
        try:
            if not self.closing:
                await self._come_back()
            elif self._returning is not None:
                await end_tasks(self._returning)
        finally:
            self._there.set()
            self._back_at = None
            with boundary(logger, "the end of the absence was not stored"):
                await self._store.write(lambda db: unavailability.ends(db, self._clock.now()))

    async def _expected(self, model: Path, name: str) -> float:
        """Seconds that a training takes: as the last ones of this model, else by the estimate; 0: unknown."""
        last = await self._store.read(lambda db: runs.last_runs(db, self._scope, _LOOKS_BACK, model=name))
        took = [
            run.finished_at - run.started_at
            for run in last
            if run.finished_at is not None and run.state in ("activated", "refused")
        ]
        return min(took) if took else await asyncio.to_thread(memory_estimate.seconds, model, self._backend)

    @property
    def _gives_room(self) -> bool:
        return type(self._server).make_room is not Server.make_room

    def _measure(self, model: Path, settings: Mapping[str, Any]) -> tuple[Peaks, str]:
        found = memory_estimate.look(
            self._served, model, settings, self._backend, up=self._ours and self._server.healthy()
        )
        return found, "" if self._ours else memory_estimate.apart(self._url, self._served, self._backend)
