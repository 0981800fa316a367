# SPDX-License-Identifier: Apache-2.0
"""Whether the model is there to be asked: it may be coming up, away for a training, or have ended.

A question waits meanwhile, and one under which it ended is asked again once it is back. Where it does not
come back, whoever asks is told at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from goodbot.api.sentences import Reason, because
from goodbot.api.server import Server
from goodbot.api.texts import say
from goodbot.base.clock import Clock
from goodbot.base.errors import GoodbotError, ServerError, message_of
from goodbot.base.tasks import end_tasks
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.training.memory_sharing import MemorySharing

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_TRIES = 3
"""A question that ends the model each time is given up."""
_LONGEST = 600.0
"""Seconds that a question waits for a restart, as for one of goodbot itself."""


class Presence:
    """Of one server."""

    def __init__(
        self, server: Server, registry: AdapterRegistry, memory: MemorySharing, clock: Clock
    ) -> None:
        self._server, self._registry, self._memory, self._clock = server, registry, memory, clock
        self._coming: asyncio.Task[None] | None = None
        self._since: float | None = None
        self._up = asyncio.Event()
        """It was there once: before that goodbot itself starts."""

    @property
    def away(self) -> bool:
        """Whether questions wait for it."""
        return self._memory.away or self.loading

    @property
    def loading(self) -> bool:
        """Whether it comes up, or has to yet."""
        return self._coming is not None or not self._up.is_set()

    @property
    def state(self) -> str:
        """`up` or `down`; where it never was up `starting`, or `stopped` while nobody has it come."""
        if self._since is None:
            return "stopped"
        if self._coming is not None and not self._up.is_set():
            return "starting"
        return "up" if self._server.healthy() else "down"

    def starting(self, language: str = "") -> str:
        """`starting: loading the model, 12 s` while it comes up; else empty."""
        if self._coming is None or self._since is None:
            return ""
        return say("status_starting", language, seconds=round(self._clock.monotonic() - self._since))

    @property
    def life(self) -> int:
        """Grows when it has ended and was started again."""
        return self._registry.lives

    def note(self) -> Reason | None:
        """What to tell somebody who asks now; None: the answer comes at once."""
        return self._memory.note() or (because("loading") if self.loading else None)

    async def present(self) -> None:
        """Return once questions need not wait."""
        await self._memory.present()
        await self._up.wait()  # where it never comes up goodbot ends, and the next one answers
        if self._coming is not None:
            await asyncio.wait([self._coming])

    async def come(self, *, first: bool = False) -> None:
        """Have it come up with the version that should answer, or wait until it has.

        `first`: with goodbot itself; then the base model answers where that version does not come up.
        Who is cancelled meanwhile leaves it to the others. Raises GoodbotError.
        """
        if self._coming is None:
            self._since = self._clock.monotonic()
            self._coming = asyncio.create_task(self._bring(first=first), name="the model comes")
            self._coming.add_done_callback(self._came)
        await asyncio.shield(self._coming)

    async def tend(self) -> None:
        """Put right what is wrong with it, by itself. Raises GoodbotError."""
        if self._server.healthy():
            await self._reconcile()
        else:
            await self.come()

    async def asked(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """What `ask` returns; it is called again where the model ended under it, and is back.

        Raises what it raises.
        """
        for left in reversed(range(_TRIES)):
            life = self.life
            try:
                return await ask()
            except ServerError as error:
                if error.refused or not left or not await self.returned(life):
                    raise
                logger.warning("a question is asked again: %s", error)
        raise AssertionError("unreachable")

    async def returned(self, life: int) -> bool:
        """After a failure in this `life`: whether the model had ended, and is there again."""
        if self._memory.away:
            await self._memory.present()
        elif self._coming is None and self.life == life and self._server.healthy():
            return False
        try:
            async with asyncio.timeout(_LONGEST):
                if self._coming is not None or not self._server.healthy():
                    await self.come()
        except (GoodbotError, TimeoutError) as error:
            logger.error("the model does not come back: %s", message_of(error))
            return False
        return True

    async def stop(self) -> None:
        """Whatever it is at, no more of it."""
        await end_tasks(self._coming)

    async def _bring(self, *, first: bool) -> None:
        if first:
            async with self._registry.still():
                await self._registry.start()
            self._up.set()
            try:
                if wrong := await self._registry.reconcile(fresh=True):
                    logger.info("at start: %s", wrong)
            except ServerError as error:  # the base model answers meanwhile
                logger.warning("at start: %s; it is tried again", error)
        else:
            await self._reconcile()

    async def _reconcile(self) -> None:
        if wrong := await self._registry.reconcile():
            logger.warning("reconciled: %s", wrong)

    def _came(self, task: asyncio.Task[None]) -> None:
        self._coming = None
        if not task.cancelled():
            task.exception()  # whoever waits has it
