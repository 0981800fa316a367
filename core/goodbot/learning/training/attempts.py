# SPDX-License-Identifier: Apache-2.0
"""A training that outlives its children: one that dies is followed by another, from its checkpoint.

How often is bounded by what the store knows of the run (`store/progress.py`), so that it is also across
restarts of goodbot: three children that do not get on end the run, and so do three that run out of
memory, or that have to be ended, whatever they say of how far they are. Each child after a failure gets a
smaller memory plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from goodbot.base import full_disk
from goodbot.base.errors import TrainingError, boundary
from goodbot.base.worded import Worded, said_by
from goodbot.learning import worker_process
from goodbot.learning.core import Core
from goodbot.learning.training import remote
from goodbot.learning.training.cluster import Cluster
from goodbot.learning.training.remote import Remote
from goodbot.store import Store, distilled, progress, quarantined, settings, shifts

logger = logging.getLogger(__name__)

MOST = 3
"""Children without a step forward, children that ran out of memory, and children that did not end."""


class Attempts:
    """Starts the children of a run, one after the other."""

    def __init__(self, core: Core) -> None:
        self._core, self._store, self._backend = core, core.store, core.backend

    async def train(
        self, run: int, job: Mapping[str, Any], on_event: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> Mapping[str, Any]:
        """Run a job to its end; returns the `done` event. Cancelling ends the child.

        Raises TrainingError as `worker_process.train` does, when another try would not help: kind `oom` only
        after the smallest plan has failed. It starts none for a run that has ended goodbot itself
        so often.
        """
        before_this = await self._store.read(lambda db: progress.of(db, run))
        if before_this.starts >= MOST:
            raise TrainingError(_ended(before_this), kind="died")
        found = await asyncio.to_thread(remote.allowed, self._core.config, self._backend)
        if found is None:
            return await self._tried(run, job, on_event, None)
        job = await self._elsewhere(run, job, found)
        try:
            done = await self._tried(run, job, on_event, found)
        finally:
            await found.close()
        return {**done, "metrics": {**done.get("metrics", {}), **found.traffic}}

    async def _tried(
        self,
        run: int,
        job: Mapping[str, Any],
        on_event: Callable[[Mapping[str, Any]], Awaitable[None]],
        found: Remote | Cluster | None,
    ) -> Mapping[str, Any]:
        """Start children until one comes to the end, or another would not help."""
        elsewhere: dict[str, Any] = {} if found is None else {"answer": found.answer}
        while True:
            now = await self._store.write(lambda db: progress.begins(db, run))
            # A child that was killed without a word may have run out of memory, too.
            attempt = min(MOST - 1, now.memory + now.starts - 1)
            before = kernel_kills()
            try:
                told = {**job, "attempt": attempt}
                return await worker_process.train(self._backend, told, on_event, **elsewhere)
            except TrainingError as error:
                out = error.kind == "oom" or (error.kind == "killed" and kernel_kills() > before)
                await self._go_on_or_raise(run, error, out)
                if found is not None:
                    await found.close()  # the next child is not to hear what this one has asked

    async def full(self, run: int, error: Exception, *, recorded: bool) -> TrainingError | None:
        """What is said of a run that waits until the disk has room again; None: it has another end.

        It waits no more after so many starts without a step forward: there is room by all that can be seen.
        One whose version is `recorded` starts no more children, and always waits.
        """
        if not full_disk.is_full(error):
            return None
        now = await self._store.read(lambda db: progress.of(db, run))
        if now.starts >= MOST and not recorded:
            return None
        on = Worded("The disk is full: free some space. Then the training goes on.")
        if now.steps and not recorded:
            at = "The disk is full: free some space. Then the training goes on at step {step} of {steps}."
            on = Worded(at, step=now.step, steps=now.steps)
        return TrainingError(on, kind=full_disk.KIND)

    async def _elsewhere(
        self, run: int, job: Mapping[str, Any], found: Remote | Cluster
    ) -> Mapping[str, Any]:
        """The job with who computes it; that it goes there is in the audit."""
        if isinstance(found, Cluster):
            found.model = self._core.model.path
        hosts = {"hosts": list(found.config.hosts)} if isinstance(found, Cluster) else {}
        detail = {"run": run, "host": found.host, **hosts, "answers": len(job["items"])}
        now = self._core.clock.now()
        await self._store.write(lambda db: settings.record(db, "goodbot", "train elsewhere", detail, now))
        return {**job, "remote": found.told(self._core.model.name)}

    async def _go_on_or_raise(self, run: int, error: TrainingError, out_of_memory: bool) -> None:
        if out_of_memory:
            now = await self._store.write(lambda db: progress.runs_out(db, run))
            if now.memory >= MOST:
                out = "it ran out of memory {times} times, at last with the smallest plan there is ({why})"
                raise TrainingError(Worded(out, times=MOST, why=said_by(error)), kind="oom") from error
        elif error.kind in ("endless", "silent"):
            now = await self._store.write(lambda db: progress.overruns(db, run))
            if max(now.starts, now.endless) >= MOST:
                raise error
        elif error.kind in ("killed", "died"):
            now = await self._store.read(lambda db: progress.of(db, run))
            if now.starts >= MOST:
                raise error
        else:
            raise error
        logger.warning("run %d goes on%s: %s", run, now.where, error, extra={"run": run})


def _ended(now: progress.RunProgress) -> str:
    """What is said of a run that has ended goodbot itself too often."""
    if now.steps:
        at = "goodbot ended {times} times while it trained at step {step} of {steps}"
        return Worded(at, times=now.starts, step=now.step, steps=now.steps)
    return Worded("goodbot ended {times} times while it trained", times=now.starts)


def kernel_kills(root: Path = Path("/")) -> int:
    """How many processes the kernel has killed for want of memory since the boot; 0: not known."""
    try:
        for line in (root / "proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0


async def keep(store: Store, run: int, event: Mapping[str, Any], now: float) -> None:
    """Store what one of its events says. Raises StoreError where the run is not to go on without that."""
    if event["event"] == "checkpoint":
        step, steps = int(event["step"]), int(event["steps"])
        with boundary(logger, "the progress of run %d was not stored", run):
            await store.write(lambda db: progress.gets_on(db, run, step, steps))
    elif event["event"] == "learnt":
        with boundary(logger, "what run %d has learnt was not stored", run):
            await store.write(lambda db: shifts.keep(db, run, event))
    elif event["event"] == "quarantine":
        found = {str(turn["id"]): worker_process.kept(turn["reason"]) for turn in event["turns"]}
        await store.write(lambda db: quarantined.add(db, run, "nan", found, now))
        named = worker_process.kept(", ".join(found))
        logger.warning("run %d goes without %s", run, named, extra={"run": run})
    elif event["event"] == "notes":
        retired = [int(one["id"]) for one in event["notes"] if one["retired"]]
        with boundary(logger, "which notes run %d has learnt was not stored", run):
            await store.write(lambda db: distilled.retire(db, run, retired))
    elif event["event"] == "lines":
        refuted = [int(one["id"]) for one in event["lines"] if one["refuted"]]
        with boundary(logger, "which notes the ratings of run %d refute was not stored", run):
            await store.write(lambda db: distilled.refute(db, run, refuted))
