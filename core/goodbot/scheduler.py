"""When to train: enough live ratings, the time for it, not paused, nobody waiting. Single flight."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime

from goodbot.adapters import AdapterRegistry
from goodbot.clock import Clock
from goodbot.config import TrainingConfig
from goodbot.errors import GoodbotError, UsageError
from goodbot.plugins import PluginHost
from goodbot.store import Store, access, runs
from goodbot.trainer import Trainer, Verdict

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 30.0
_TRIES = 3
"""After so many failures in a row it waits for a person, or for a fifth of new ratings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether a run is due, and the one sentence that says why or why not."""

    due: bool
    why: str
    available: int
    needed: int


class Scheduler:
    """Starts runs. `wake` is called after every commit that may have changed something."""

    def __init__(
        self, *, store: Store, registry: AdapterRegistry, trainer: Trainer, plugins: PluginHost,
        clock: Clock, config: TrainingConfig, pool: runs.Pool,
    ) -> None:  # fmt: skip
        self._store = store
        self._registry = registry
        self._trainer = trainer
        self._plugins = plugins
        self._clock = clock
        self._config = config
        self._pool = pool
        self._wake = asyncio.Event()
        self._run: asyncio.Task[Verdict] | None = None
        self._last_talk = float("-inf")
        self._last_day = ""

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

    async def loop(self) -> None:
        """Start runs as they fall due, until cancelled; a run under way is stopped then."""
        try:
            while True:
                self._wake.clear()
                quiet_in = self._config.idle_seconds - (self._clock.monotonic() - self._last_talk)
                if quiet_in <= 0 and not self.training:
                    try:
                        readiness = await self.readiness()
                        if readiness.due:
                            await self.start(readiness.why)
                        else:
                            await self._withdraw_tainted()
                    except GoodbotError as error:
                        logger.error("training could not start: %s", error)
                await self._sleep(min(_CHECK_SECONDS, quiet_in) if quiet_in > 0 else _CHECK_SECONDS)
        finally:
            await self.stop()

    async def standing(self) -> runs.Standing:
        """What a run could claim now."""
        return await self._store.read(lambda db: runs.standing(db, self._pool))

    async def readiness(self) -> Readiness:
        """Whether an automatic run is due now."""
        needed = self._config.min_ratings
        standing = await self.standing()
        available = standing.available

        def answer(due: bool, why: str) -> Readiness:
            return Readiness(due=due, why=why, available=available, needed=needed)

        if await self._store.read(lambda db: access.switch(db, "paused")):
            return answer(False, "training is paused; `resume` lets it go on")
        if await self._store.read(lambda db: access.switch(db, "off")):
            return answer(False, "goodbot is off: the base model answers; `resume` brings it back")
        retrain = await self._store.read(lambda db: access.switch(db, "retrain"))
        if available < needed and not (retrain and available >= needed // 2):
            return answer(False, f"{available} of {needed} ratings until the next training")
        if held := await self._held_back():
            return answer(False, held)
        if self._config.schedule != "auto" and not retrain and (wait := self._not_yet()):
            return answer(False, wait)
        if objection := self._plugins.veto_training(available):
            return answer(False, objection)
        return answer(True, retrain or f"{available} ratings")

    async def _withdraw_tainted(self) -> None:
        """A tainted adapter answers only until its replacement is trained, or cannot be."""
        active = await self._registry.active()
        clean = await self._registry.clean_ancestor(active)
        if clean != active and await self._registry.activate(clean, expected=active):
            await self._store.write(lambda db: access.set_switch(db, "retrain", ""))
            logger.warning("v%d was withdrawn, v%d answers: a rating was taken back", active, clean)

    async def _held_back(self) -> str:
        """After a verdict that was no success, the same ratings are not tried over and over."""
        last = await self._store.read(lambda db: runs.last_runs(db, self._pool.scope, _TRIES))
        if not last or last[0].state not in ("failed", "refused"):
            return ""
        if last[0].state == "failed" and any(run.state != "failed" for run in last[1:]):
            return ""
        if last[0].state == "failed" and len(last) < _TRIES:
            return ""
        fresh = await self._store.read(
            lambda db: runs.labels_since(db, self._pool.scope, last[0].id)
        )
        wanted = max(1, self._config.min_ratings // 5)
        if fresh >= wanted:
            return ""
        return f"the last run {last[0].state} ({last[0].reason}); {wanted - fresh} new ratings until another try"

    def _not_yet(self) -> str:
        """Why the configured schedule does not allow a run now; empty if it does."""
        if self._config.schedule == "manual":
            return "training starts on command: `train`"
        local = datetime.fromtimestamp(self._clock.now())  # noqa: DTZ006  the owner's own clock
        if local.strftime("%H:%M") < self._config.schedule or self._last_day == f"{local:%Y-%m-%d}":
            return f"training starts at {self._config.schedule}"
        return ""

    async def start(self, why: str) -> asyncio.Task[Verdict]:
        """Start a run now. Raises UsageError when one is under way."""
        if self.training:
            raise UsageError("a training is already under way")
        self._last_day = f"{datetime.fromtimestamp(self._clock.now()):%Y-%m-%d}"  # noqa: DTZ006
        self._run = asyncio.create_task(self._trainer.run(why), name="training run")
        self._run.add_done_callback(self._ended)
        return self._run

    def _ended(self, task: asyncio.Task[Verdict]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no training: %s", error)
        self.wake()

    async def stop(self) -> None:
        """Cancel a run under way; its ratings are released."""
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
