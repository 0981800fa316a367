# SPDX-License-Identifier: Apache-2.0
"""One training run from claim to verdict: claim → child process → gate → publish → activate.

Everything that decides is done in the store's transactions, which compare the run's id and the
labels that it claimed; whatever else happens meanwhile (an undo, a rollback) wins.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from goodbot.api.sentences import Reason, because
from goodbot.base.errors import GoodbotError, boundary
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training import attempts, batch, dry_run, opening, starting_over
from goodbot.learning.training.attempts import Attempts
from goodbot.learning.training.curve import LossCurve
from goodbot.learning.training.distilling import NoteLines
from goodbot.learning.training.folders import RunFolders
from goodbot.learning.training.job_spec import make_job
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.outcome import RunOutcome, end, failed, verdict_of
from goodbot.learning.training.publish import Publisher
from goodbot.store import adapters, codec, progress, quarantined, runs
from goodbot.store.commit_queue import Operation

logger = logging.getLogger(__name__)

STOPPED = because("kept_stopped")
Claimed = tuple[int, int, tuple[runs.RunItem, ...]]
"""A run, the version that it continues, and what it learns from."""


class Trainer:
    """Runs one training at a time; `progress` is what the child said last."""

    def __init__(
        self,
        core: Core,
        registry: AdapterRegistry,
        memory: MemorySharing,
        *,
        ask: str = "never",
        lines: NoteLines | None = None,
    ) -> None:
        """`ask` as in `[serving]`: when owners are asked which version is better. `lines` are taught."""
        self._core, self._registry, self._memory = core, registry, memory
        self._store, self._plugins, self._clock, self._pool = core.store, core.plugins, core.clock, core.pool
        self._lines, self.scope = lines, core.pool.scope
        self._folders = RunFolders(core.config.home)
        self._attempts = Attempts(core)
        self._going_live = Publisher(core, registry, ask=ask)
        self._gate: Mapping[str, Any] = {}
        self._left = 0
        """Answers that the run under way has let go, since it started over."""
        self._unwritten: RunOutcome | None = None
        self._looking = asyncio.Lock()
        self.ending: Reason | None = STOPPED
        """With which reason cancelling `run` ends the run; None: it waits, to go on later."""
        self.progress: Mapping[str, Any] | None = None
        self.curve = LossCurve()

    async def run(
        self, cause: Sequence[Reason], *, at_least: int = 1, replay: bool = False, background: bool = False
    ) -> RunOutcome:
        """Go on with an interrupted run, or claim `at_least` so many answers for a `cause`; train and decide.

        With `replay` what other base models were rated for is available too, and an interrupted run
        is given up. Raises TrainingError or StoreError when there was nothing to claim; then nothing but
        TrainingError where the disk is full, for which the run waits, and cancellation, which ends the child
        within a second and the run too, unless `ending` is None. In the `background` the child has the
        lowest priority, since nobody waits for it.
        """
        self.ending, self._left = STOPPED, 0
        active = await self._registry.active()
        taken = await self._taken_up(replay)
        parent = await self._registry.usable_ancestor(await self._registry.head())
        run, parent, items = taken or await self._claimed(parent, cause, at_least, replay)
        self._begins(run)
        try:
            await self._plugins.on_training_started(run, len(items), [one.reward for one in items])
            verdict = await self._train(run, active, parent, items, background)
            while verdict.state == "superseded":
                parent, items = await self._without_changes(run, parent, items, replay)
                if not items:
                    break
                self._begins(run)
                verdict = await self._train(run, active, parent, items, background)
        except asyncio.CancelledError:
            if self.ending or not await self._suspended(run):
                await self._finish(self._ended(run))
            raise
        except Exception as error:
            of = {"recorded": self._going_live.waits(run)}
            if not replay and await self.underway() and (full := await self._attempts.full(run, error, **of)):
                await self._plugins.on_training_interrupted(run)
                raise full from error
            verdict = failed(run, error)
        finally:
            self.progress = None
        await self._finish(verdict)
        return verdict

    async def dry_run(self, *, busy: bool = False) -> dry_run.Prospect:
        """What `run` would do now and what it would cost, without doing it."""
        parent = await self._registry.usable_ancestor(await self._registry.head())
        async with self._looking:
            waiting = None if busy else await self.underway()
            of = (self._core, self._registry, self._memory, self._lines)
            return await dry_run.look(*of, parent=parent, waiting=waiting, busy=busy)

    async def underway(self) -> progress.Underway | None:
        """The run without a verdict: the one that trains now, or one that was interrupted."""
        if self._unwritten is not None:
            return None  # it has one
        found = await self._store.read(lambda db: progress.underway(db, self._pool.scope))
        # What is recorded may go live yet: nothing else speaks against it than before that.
        return replace(found, published=False) if found and self._going_live.waits(found.run) else found

    async def release(self, ending: tuple[Reason, ...]) -> bool:
        """Give up an interrupted run; its ratings are free. False when there is none."""
        found = await self.underway()
        if found is not None:
            self._gate = {}
            await self._finish(RunOutcome(run=found.run, state="superseded", ending=ending))
        else:
            await self._folders.remove_ended(self._store)
        return found is not None

    async def recover(self) -> str:
        """At start: the staging folder of a run that may go on, empty if there is none.

        One whose adapter was about to go live is given up: an undo would not reach that any more.
        What was set aside under other settings may train again.
        """
        now = codec.dump_json(batch.settings_of(self._core))
        if again := await self._store.write(lambda db: quarantined.release(db, self._pool.model, but=now)):
            logger.info("%d answers train again: the settings have changed", again)
        found = await self.underway()
        if found is not None and found.published:
            await self.release((because("ended_live"),))
            return ""
        return f"run-{found.run}" if found else ""

    async def resumable(self, *, replay: bool = False) -> progress.Underway | None:
        """An interrupted run that can go on, perhaps without what changed; one that cannot is given up."""
        if (found := await self.underway()) is None:
            return None
        against = await starting_over.objection(self._core, self._registry, found)
        if replay or (against and not starting_over.mends(against, found.progress)):
            await self.release(against or (because("ended_replayed"),))
            return None
        return found

    async def _taken_up(self, replay: bool) -> Claimed | None:
        if (found := await self.resumable(replay=replay)) is None:
            return None
        run, parent = found.run, found.parent
        items = await self._store.read(lambda db: progress.items(db, run))
        if against := await starting_over.objection(self._core, self._registry, found):
            parent, items = await self._without_changes(run, parent, items, replay)
        if items:
            logger.info("run %d goes on", run, extra={"run": run})
            return run, parent, items
        await self.release(against)
        return None

    async def _without_changes(
        self, run: int, parent: int, items: tuple[runs.RunItem, ...], replay: bool
    ) -> tuple[int, tuple[runs.RunItem, ...]]:
        """Start over without what has changed; from which version, and on what: nothing ends the run."""
        of = (self._core, self._registry, self._lines, self._folders, run)
        clean, left = await starting_over.start_over(*of, parent, items, replay=replay)
        self._going_live.drop()
        self._left += len(items) - len(left)
        return clean, left

    def _ended(self, run: int) -> RunOutcome:
        return RunOutcome(run=run, state="superseded", ending=(self.ending or STOPPED,))

    async def _suspended(self, run: int) -> bool:
        """Leave a run as it is; False when it has a verdict."""
        with boundary(logger, "run %d was suspended", run):
            now = await self._store.write(lambda db: progress.stops(db, run))
            if await self.underway() is None:
                return False
            logger.info("run %d waits at step %d of %d", run, now.step, now.steps)
        await self._plugins.on_training_interrupted(run)
        return True

    async def _claimed(self, parent: int, cause: Sequence[Reason], at_least: int, replay: bool) -> Claimed:
        """`_claim`, which once begun also commits: a run that nobody knows could never be ended."""
        if (unwritten := self._unwritten) is not None:
            await self._store.write(self._ends(unwritten))
            self._unwritten = None
        ahead = opening.Ahead(self._core, parent=parent, replay=replay)
        claimed: Claimed | None = None
        while claimed is None:
            await ahead.look()
            claiming = asyncio.create_task(self._claim(ahead, cause, at_least), name="claim")
            try:
                claimed = await asyncio.shield(claiming)
            except asyncio.CancelledError:
                with contextlib.suppress(GoodbotError):
                    if (found := await claiming) is not None:
                        await self._finish(self._ended(found[0]))
                raise
        return claimed

    async def _claim(self, ahead: opening.Ahead, cause: Sequence[Reason], at_least: int) -> Claimed | None:
        """Take the ratings and open the run in one transaction; None: `ahead` is to look again."""
        of = (self._core, ahead, self._lines)
        opened = await opening.opened(*of, cause=cause, at_least=at_least)
        return opened and (opened[0], ahead.parent, opened[1])

    def _begins(self, run: int) -> None:
        self._gate = self._gate if self._going_live.waits(run) else {}
        self._moves({"phase": "load", "step": 0, "steps": 0})

    def _moves(self, event: Mapping[str, Any]) -> None:
        self.progress = {**event, "left": self._left} if self._left > 0 else event

    async def _train(
        self, run: int, active: int, parent: int, items: Sequence[runs.RunItem], background: bool
    ) -> RunOutcome:
        if (live := await self._going_live.again(run)) is not None:
            return live
        job = await make_job(
            *(self._core, self._registry, self._lines),
            run=run,
            parent=parent,
            items=items,
            folder=await asyncio.to_thread(self._folders.of, run),
            background=background,
        )
        output, core = Path(job["output"]), self._core
        async with self._memory.room(core.model.path, core.settings, core.model.name) as come_back:
            done = await self._attempts.train(run, job, lambda event: self._on_event(run, event))
            gate = self._gate
            verdict = verdict_of(gate, self._left)
            if not gate.get("passed"):
                return RunOutcome(run=run, state="refused", ending=verdict)
            await come_back()
            held = {"peak_memory": done["peak_memory"]} if "peak_memory" in done else {}
            held |= {adapters.SHARED_PART: job["shared"]} if "shared" in job else {}
            metrics = {**done.get("metrics", {}), **held, "gate": gate.get("metrics", {})}
            return await self._going_live.go(
                run,
                active=active,
                parent=parent,
                output=output,
                metrics=metrics,
                baseline=dict(done["baseline"]),
                gate=gate,
                verdict=verdict,
            )

    async def _finish(self, verdict: RunOutcome) -> None:
        """`_conclude`, which also ends when it is cancelled: who tracks the run waits for its end."""
        concluding = asyncio.create_task(self._conclude(verdict), name="verdict")
        try:
            await asyncio.shield(concluding)
        except asyncio.CancelledError:
            await concluding
            raise

    async def _conclude(self, verdict: RunOutcome) -> None:
        """Write the verdict, unless the run has one already, and tell the plugins which it is."""
        await asyncio.to_thread(self._folders.remove, verdict.run)
        try:
            verdict = await self._store.write(self._ends(verdict))
        except Exception:
            logger.exception("the verdict of run %d was not stored", verdict.run, extra={"run": verdict.run})
            self._unwritten = verdict  # the next claim does it: no run can start beside this one
        logger.info("run %d: %s: %s", verdict.run, verdict.state, verdict.reason, extra={"run": verdict.run})
        await self._plugins.on_training_finished(verdict.run, verdict.state, verdict.reason)

    def _ends(self, verdict: RunOutcome) -> Operation[RunOutcome]:
        return partial(end, outcome=verdict, gate=self._gate, now=self._clock.now())

    async def _on_event(self, run: int, event: Mapping[str, Any]) -> None:
        if event["event"] == "gate":
            self._gate = event
        elif event["event"] == "progress":
            self._moves(event)
            self.curve.add(run, event)
            await self._plugins.on_training_progress(run, event)
        else:
            if event["event"] == "checkpoint":
                with boundary(logger, "the checkpoint of run %d was not kept", run):
                    await asyncio.to_thread(self._folders.keep, run)
            await attempts.keep(self._store, run, event, self._clock.now())
