# SPDX-License-Identifier: Apache-2.0
"""When to train: enough live ratings, the time for it, not paused, nobody waiting. Single flight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiosqlite

from goodbot.api.sentences import Condition, Reason, because, clause_of, met, waits
from goodbot.base.clock import woken
from goodbot.base.errors import UsageError, boundary
from goodbot.base.suggest import version_name
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import Worded
from goodbot.inference.servers import choice
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.idle import LoadMonitor
from goodbot.learning.training.disk_room import DiskRoom
from goodbot.learning.training.outcome import RunOutcome
from goodbot.learning.training.readiness import Readiness, not_yet
from goodbot.learning.training.round_size import RoundSize
from goodbot.learning.training.trainer import STOPPED, Trainer
from goodbot.store import adapters, runs, settings, training_pool

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 30.0
_BURST_SECONDS = 0.05
"""Ratings may come by the thousand, and a look costs as much as one of them: they are collected so long."""
_BURST_COUNTED = 1000
"""So much may a look count for that; after one that counts more they are collected longer, in proportion."""
_PRESSURE_SECONDS = 10.0
"""How often it looks, while a run is under way, whether the machine is needed for something else."""
_PATIENCE_SECONDS = 600.0
"""Where somebody always talks, a run that is due starts after so long all the same."""
CANCELLED = because("kept_cancelled")
_TRIES = 3
"""After so many failures in a row it waits for a person, or for a fifth of new ratings."""


class Scheduler:
    """Starts runs. `wake` is called after every commit that may have changed something."""

    def __init__(self, core: Core, registry: AdapterRegistry, trainer: Trainer, load: LoadMonitor) -> None:
        self._store, self._registry = core.store, registry
        self._trainer = self.runner = trainer
        """`runner` is whose run is or was the last: this model's, or that of one to switch to."""
        self._objection = choice.objection(core.spec)  # of the config: nothing that is trained could answer
        self._load, self._plugins, self._clock = load, core.plugins, core.clock
        self._config, self._pool, self._filtering = core.config.training, core.pool, core.filtering
        self.size, self.disk = RoundSize.of(core), DiskRoom.of(core)
        self._retrain = adapters.retrain_switch(core.pool.scope, core.pool.model)
        self._wake = asyncio.Event()
        self._run: asyncio.Task[RunOutcome] | None = None
        self.last_talk = float("-inf")
        self._due_since: float | None = None
        self._automatic, self._goes_on = False, True
        """Whether the run that is or was the last gives way to others, and goes on when it was suspended."""
        self._stops = 0
        self._burst = _BURST_SECONDS
        """How long ratings are collected after the last look."""
        self._barren = False
        """The last start found nothing to claim, or could not."""
        self._held: Condition | None = None

    def wake(self) -> None:
        """Look again soon."""
        self._wake.set()

    def somebody_talks(self) -> None:
        """A person is waiting for an answer; automatic runs start when it is quiet."""
        self.last_talk = self._clock.monotonic()

    @property
    def training(self) -> bool:
        """Whether a run is under way."""
        return self._run is not None and not self._run.done()

    @property
    def held(self) -> Condition | None:
        """What a run waits for that has its ratings, as of the last look; None: of nothing that is known."""
        return waits("server", said=self._objection) if self._objection else self._held

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """What the child of the run under way said last; None while nothing trains."""
        return self.runner.progress

    async def pressure(self) -> Condition | None:
        """What else the machine is needed for; None if it is not."""
        return await self._load.objection(training=self.training)

    async def loop(self) -> None:
        """Start runs as they fall due, until cancelled; a run under way is suspended then."""
        try:
            while True:
                self._wake.clear()
                self._burst = _BURST_SECONDS
                seconds, looked = _CHECK_SECONDS, self._clock.monotonic()
                if self.training:
                    seconds = await self._give_way()
                else:
                    with boundary(logger, "training could not start"):
                        seconds = min(seconds, await self._look())
                await woken(self._wake, self._clock, seconds, not_before=looked + self._burst)
        finally:
            await self.suspend()

    async def _give_way(self) -> float:
        """Interrupt an automatic run that others have needed the machine for; a person's goes on."""
        pressure = await self._load.during_run()
        if pressure and self._automatic and self.training:  # as it is now: reading takes a while
            logger.info("the training is interrupted: %s", pressure.for_owners())
            await self.suspend()
        return _PRESSURE_SECONDS

    async def _look(self) -> float:
        """Start what is due; returns in how many seconds to look again at the latest."""
        stops = self._stops
        tainted = await self._tainted()  # before: what an undo taints meanwhile may train anew
        readiness = await self.readiness()
        self._burst = _BURST_SECONDS * max(1.0, readiness.counted / _BURST_COUNTED)
        if readiness.interrupted and await self._trainer.resumable() is None:
            readiness = await self.readiness()  # that run could not go on, and is given up
        if not readiness.due or (readiness.urgent and self._barren):
            self._due_since, self._barren = None, False
            if tainted:
                await self.withdraw_tainted()
            return _CHECK_SECONDS
        now = self._clock.monotonic()
        self._due_since = now if self._due_since is None else self._due_since
        quiet_in = self.last_talk + self._config.idle_seconds - now
        patience = self._due_since + _PATIENCE_SECONDS - now
        if quiet_in > 0 and patience > 0 and not readiness.urgent:
            return min(quiet_in, patience)
        self._due_since = None
        if stops == self._stops and not self.training:  # neither paused nor started meanwhile
            await self.start([readiness.condition.reason()], at_least=readiness.enough, automatic=True)
        return _CHECK_SECONDS

    async def standing(self) -> training_pool.PoolCount:
        """What a run could claim now."""
        return await self._store.read(lambda db: training_pool.standing(db, self._pool))

    async def needed(self) -> int:
        """How many ratings the next run waits for."""
        return await self._store.read(self.size.now)

    async def readiness(self) -> Readiness:
        """Whether an automatic run is due now."""
        retrain = await self._store.read(lambda db: settings.switch(db, self._retrain))
        needed = await self.needed()
        enough = max(1, self._config.min_ratings // 2) if retrain else needed
        waiting = None if self.training else await self._trainer.underway()
        at = {"step": waiting.progress.step, "steps": waiting.progress.steps} if waiting else {}
        condition = await self._forbidden(at)
        condition = condition or (await self._to_go_on(waiting.items, at) if waiting else None)
        condition = condition or await self._to_begin(enough, needed, retrain)
        return Readiness(
            condition=condition,
            enough=enough,
            urgent=bool(retrain),
            interrupted=waiting is not None,
            counted=condition.facts.get("available", 0),
        )

    async def _forbidden(self, at: Mapping[str, int]) -> Condition | None:
        """What a person has to change first; None where nothing is."""
        if await self._store.read(lambda db: settings.switch(db, "paused")):
            return waits("paused", **at)
        if await self._store.read(lambda db: settings.switch(db, "off")):
            return waits("off")
        return waits("server", said=self._objection) if self._objection else None

    async def _to_go_on(self, items: int, at: Mapping[str, int]) -> Condition:
        """Whether an interrupted run may go on now: it has been due before."""
        if pressure := self.disk.missing() or await self._load.before_run():
            return replace(pressure, facts={**pressure.facts, **at})
        if objection := self._plugins.veto_training(items):
            return waits("plugin_again", said=objection, **at)
        return met("goes_on", **at)

    async def _to_begin(self, enough: int, needed: int, retrain: str) -> Condition:
        """The first thing that a new run waits for, or what it is for."""
        # Every rating asks for this: all are counted only once nothing else is in the way.
        available = await self._store.read(lambda db: training_pool.available(db, self._pool, needed))
        # From half of them on: the receipt of the last one is to say what is in the way.
        self._held = await self._obstacle(retrain) if 2 * available >= enough else None
        if available < enough:
            return waits("ratings", available=available, needed=needed)
        if held := self._held:
            return replace(held, facts={**held.facts, "available": available})
        available = (await self.standing()).available
        if objection := self._plugins.veto_training(available) or self._filtering.failed:
            self._held = waits("plugin", said=objection, available=available)
            return self._held
        return met("replaces" if retrain else "enough", said=retrain, available=available)

    async def _obstacle(self, retrain: str) -> Condition | None:
        """What is in the way of a new run, beside ratings and plugins."""
        held = self.disk.missing() or await self._held_back()
        if held is None and not retrain:
            last = await self._store.read(self._last_runs)
            held = not_yet(self._config.schedule, self._clock.now(), last[0].started_at if last else None)
        return held or await (self.pressure() if self.training else self._load.before_run())

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
            await self._store.write(lambda db: settings.set_switch(db, self._retrain, ""))
            why = clause_of((await self._registry.row(active)).tainted) or "one before it is not to be used"
            logger.warning("v%d was withdrawn, %s answers: %s", active, version_name(clean), why)

    async def _held_back(self) -> Condition | None:
        """After a verdict that was no success, the same ratings are not tried over and over."""
        last = await self._store.read(lambda db: self._last_runs(db, _TRIES))
        cancelled = bool(last) and last[0].ending == (CANCELLED,)
        if not last or (last[0].state not in ("failed", "refused") and not cancelled):
            return None
        again = len(last) < _TRIES or any(run.state != "failed" for run in last[1:])
        if last[0].state == "failed" and again:
            return None
        wanted = max(1, self._config.min_ratings // 5)
        fresh = await self._store.read(lambda db: runs.labels_since(db, self._pool, last[0].id, wanted))
        if fresh >= wanted:
            return None
        if cancelled:
            return waits("cancelled", wanted=wanted - fresh)
        private = {"state": last[0].state, "ending": last[0].ending}
        return Condition(name="unsuccessful", facts={"wanted": wanted - fresh}, private=private)

    async def _last_runs(self, db: aiosqlite.Connection, limit: int = 1) -> list[runs.Run]:
        return await runs.last_runs(db, self._pool.scope, limit, model=self._pool.model)

    async def start(
        self,
        cause: Sequence[Reason],
        *,
        at_least: int = 1,
        replay_on: Trainer | None = None,
        on: Trainer | None = None,
        automatic: bool = False,
    ) -> asyncio.Task[RunOutcome]:
        """Start a run now; `replay_on` another base model it replays all ratings, `on` it is another scope's.

        An `automatic` one takes what nobody else wants of the machine. Raises UsageError when one
        is under way, or would be for nothing.
        """
        if self._objection or self.training:
            raise UsageError(self._objection or Worded("a training is already under way"))
        self.runner, self._automatic = replay_on or on or self._trainer, automatic
        self._goes_on = replay_on is None
        replay, background = replay_on is not None, automatic and self._config.max_load < 1
        work = self.runner.run(cause, at_least=at_least, replay=replay, background=background)
        self._run = asyncio.create_task(work, name="training run")
        self._run.add_done_callback(self._ended)
        return self._run

    def _ended(self, task: asyncio.Task[RunOutcome]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no training: %s", error)
            self._barren = True
            return  # nothing has changed: to look again at once would be to look for ever
        self.wake()

    async def stop(self, reason: Reason = STOPPED) -> bool:
        """End the run under way, or an interrupted one: its ratings are released. Whether there was."""
        self._stops += 1
        self.runner.ending = reason
        ended, others = await self._end(), self.runner.scope != self._pool.scope
        return (ended and others) or await self._trainer.release((reason,)) or ended

    async def suspend(self) -> None:
        """End the child within a second; the same run goes on from its checkpoint when it is due.

        A replay for another model is ended: whoever asked for it has to ask again.
        """
        self._stops += 1
        self.runner.ending = None if self._goes_on else STOPPED
        await self._end()

    async def _end(self) -> bool:
        if self._run is None or self._run.done():
            return False
        await end_tasks(self._run)
        return True
