"""When to train: enough live ratings, the time for it, not paused, nobody waiting. Single flight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiosqlite

from goodbot.adapters import AdapterRegistry
from goodbot.clock import Clock
from goodbot.config import TrainingConfig
from goodbot.errors import GoodbotError, UsageError
from goodbot.plugins import PluginHost
from goodbot.store import Store, access, adapters, claimable, runs
from goodbot.trainer import Trainer, Verdict

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 30.0
_PATIENCE_SECONDS = 600.0
"""Where somebody always talks, a run that is due starts after so long all the same."""
_TRIES = 3
"""After so many failures in a row it waits for a person, or for a fifth of new ratings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether a run is due, and the one sentence that says why or why not."""

    due: bool
    why: str
    available: int
    needed: int
    enough: int = 1
    """The least that a run which is due may claim: ties count among `available`, but train nothing."""
    urgent: bool = False
    """A tainted adapter answers until this run has replaced it."""


class Scheduler:
    """Starts runs. `wake` is called after every commit that may have changed something."""

    def __init__(
        self, *, store: Store, registry: AdapterRegistry, trainer: Trainer, plugins: PluginHost,
        clock: Clock, config: TrainingConfig, pool: claimable.Pool,
    ) -> None:  # fmt: skip
        self._store = store
        self._registry = registry
        self._trainer = trainer
        self._plugins = plugins
        self._clock = clock
        self._config = config
        self._pool = pool
        self._retrain = adapters.retrain_switch(pool.model)
        self._runner = trainer
        """Whose run is or was the last: this model's trainer, or that of one to switch to."""
        self._wake = asyncio.Event()
        self._run: asyncio.Task[Verdict] | None = None
        self._last_talk = float("-inf")
        self._due_since: float | None = None
        self._stops = 0
        self._barren = False
        """The last start found nothing to claim, or could not."""

    def wake(self) -> None:
        """Look again soon."""
        self._wake.set()

    def somebody_talks(self) -> None:
        """A person is waiting for an answer; automatic runs start when it is quiet."""
        self._last_talk = self._clock.monotonic()

    @property
    def training(self) -> bool:
        """Whether a run is under way."""
        return self._run is not None and not self._run.done()

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """What the child of the run under way said last; None while nothing trains."""
        return self._runner.progress

    async def loop(self) -> None:
        """Start runs as they fall due, until cancelled; a run under way is stopped then."""
        try:
            while True:
                self._wake.clear()
                seconds = _CHECK_SECONDS
                if not self.training:
                    try:
                        seconds = min(seconds, await self._look())
                    except GoodbotError as error:
                        logger.error("training could not start: %s", error)
                    except Exception:
                        logger.exception("training could not start")
                await self._sleep(seconds)
        finally:
            await self.stop()

    async def _look(self) -> float:
        """Start what is due; returns in how many seconds to look again at the latest."""
        stops = self._stops
        tainted = await self._tainted()  # before: what an undo taints meanwhile may train anew
        readiness = await self.readiness()
        if not readiness.due or (readiness.urgent and self._barren):
            self._due_since, self._barren = None, False
            if tainted:
                await self.withdraw_tainted()
            return _CHECK_SECONDS
        now = self._clock.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        quiet_in = self._last_talk + self._config.idle_seconds - now
        patience = self._due_since + _PATIENCE_SECONDS - now
        if quiet_in > 0 and patience > 0 and not readiness.urgent:
            return min(quiet_in, patience)
        self._due_since = None
        if stops == self._stops and not self.training:  # neither paused nor started meanwhile
            await self.start(readiness.why, at_least=readiness.enough)
        return _CHECK_SECONDS

    async def standing(self) -> claimable.Standing:
        """What a run could claim now."""
        return await self._store.read(lambda db: claimable.standing(db, self._pool))

    async def readiness(self) -> Readiness:
        """Whether an automatic run is due now."""
        needed = self._config.min_ratings
        standing = await self.standing()
        available = standing.available

        def answer(due: bool, why: str) -> Readiness:
            return Readiness(
                due=due, why=why, available=available, needed=needed, enough=enough,
                urgent=bool(retrain),
            )  # fmt: skip

        retrain = await self._store.read(lambda db: access.switch(db, self._retrain))
        enough = max(1, needed // 2) if retrain else needed

        if await self._store.read(lambda db: access.switch(db, "paused")):
            return answer(False, "training is paused; `resume` lets it go on")
        if await self._store.read(lambda db: access.switch(db, "off")):
            return answer(False, "goodbot is off: the base model answers; `resume` brings it back")
        if available < enough:
            return answer(False, f"{available} of {needed} ratings until the next training")
        if held := await self._held_back():
            return answer(False, held)
        if self._config.schedule != "auto" and not retrain and (wait := await self._not_yet()):
            return answer(False, wait)
        if objection := self._plugins.veto_training(available):
            return answer(False, objection)
        return answer(True, retrain or f"{available} ratings")

    async def _tainted(self) -> bool:
        active = await self._registry.active()
        return await self._registry.clean_ancestor(active) != active

    async def withdraw_tainted(self) -> None:
        """A tainted adapter answers only until its replacement is trained, or cannot be."""
        active = await self._registry.active()
        if await self._registry.clean_ancestor(active) == active:
            return
        clean = await self._registry.usable_ancestor(active)
        if await self._registry.activate(clean, expected=active):
            await self._store.write(lambda db: access.set_switch(db, self._retrain, ""))
            logger.warning("v%d was withdrawn, v%d answers: a rating was taken back", active, clean)

    async def _held_back(self) -> str:
        """After a verdict that was no success, the same ratings are not tried over and over."""
        last = await self._store.read(lambda db: self._last_runs(db, _TRIES))
        if not last or last[0].state not in ("failed", "refused"):
            return ""
        if last[0].state == "failed" and any(run.state != "failed" for run in last[1:]):
            return ""
        if last[0].state == "failed" and len(last) < _TRIES:
            return ""
        fresh = await self._store.read(lambda db: runs.labels_since(db, self._pool, last[0].id))
        wanted = max(1, self._config.min_ratings // 5)
        if fresh >= wanted:
            return ""
        return (
            f"the last run {last[0].state} ({last[0].reason}); "
            f"{wanted - fresh} new ratings until another try"
        )

    async def _not_yet(self) -> str:
        """Why the configured schedule does not allow a run now; empty if it does.

        One run a day: the first look after the time of day at which no run has begun since.
        """
        if self._config.schedule == "manual":
            return "training starts on command: `train`"
        hours, _, minutes = self._config.schedule.partition(":")
        local = datetime.fromtimestamp(self._clock.now())  # noqa: DTZ006  the owner's own clock
        at = local.replace(hour=int(hours), minute=int(minutes), second=0, microsecond=0)
        last = await self._store.read(lambda db: self._last_runs(db))
        if local < at or (last and last[0].started_at >= at.timestamp()):
            return f"training starts at {self._config.schedule}"
        return ""

    async def _last_runs(self, db: aiosqlite.Connection, limit: int = 1) -> list[runs.Run]:
        return await runs.last_runs(db, self._pool.scope, limit, model=self._pool.model)

    async def start(
        self, why: str, *, at_least: int = 1, replay_on: Trainer | None = None
    ) -> asyncio.Task[Verdict]:
        """Start a run now; with `replay_on` one that replays all ratings on another base model.

        Raises UsageError when one is under way.
        """
        if self.training:
            raise UsageError("a training is already under way")
        self._runner = replay_on or self._trainer
        self._run = asyncio.create_task(
            self._runner.run(why, at_least=at_least, replay=replay_on is not None),
            name="training run",
        )
        self._run.add_done_callback(self._ended)
        return self._run

    def _ended(self, task: asyncio.Task[Verdict]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no training: %s", error)
            self._barren = True
            return  # nothing has changed: to look again at once would be to look for ever
        self.wake()

    async def stop(self) -> None:
        """Cancel a run under way; its ratings are released."""
        self._stops += 1
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def _sleep(self, seconds: float) -> None:
        """Until `wake`, or for `seconds`."""
        waits = [
            asyncio.create_task(self._wake.wait(), name="scheduler woken"),
            asyncio.create_task(self._clock.sleep(seconds), name="scheduler timer"),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
