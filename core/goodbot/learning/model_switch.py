# SPDX-License-Identifier: Apache-2.0
"""To another base model, with everything that was rated; the old one answers until the end.

::

    resolve → rehearse: it loads and answers → replay the ratings on it, gate included
            → rehearse with the adapter → move its pointer → save the config → start again

Each base model has adapters and a pointer of its own, so nothing before the config is saved changes
what answers: Ctrl-C, a crash or a refusal anywhere leaves the old bot as it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from goodbot.api.model import ResolvedModel
from goodbot.api.sentences import because
from goodbot.api.server import BASE
from goodbot.base.errors import TrainingError, UsageError
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import Worded
from goodbot.config.file import ConfigFile
from goodbot.inference import models
from goodbot.inference.servers.health import probe
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.outcome import RunOutcome
from goodbot.learning.training.scheduler import Scheduler
from goodbot.learning.training.trainer import Trainer
from goodbot.store import training_pool

logger = logging.getLogger(__name__)

_LEAST = 2
"""Ratings that a first replay takes: as many as `train`."""


class Rehearsal(AdapterRegistry):
    """The registry of a base model that does not answer yet.

    Its server runs only while a version of it is tried, so that beside the model that answers
    there is memory for either the trainer or this one.
    """

    async def prepare(self, version: int) -> None:
        """Start the server, load a version (0: none), see that it answers, and stop again."""
        await self._server.start()
        try:
            await super().prepare(version)
            if version == BASE:
                await probe(self._server, BASE)
        finally:
            await self._server.stop()

    async def reconcile(self, *, fresh: bool = False) -> str:
        """Nothing is to be brought together: its server is up only while it is asked."""
        return ""

    async def _switch_over(self) -> None:
        """Nobody is answered by this one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Switched:
    """What came of it. `version` answers on `model` from now on, unless `done` is False."""

    done: bool
    model: str
    version: int
    reason: str


class ModelSwitch:
    """Moves a goodbot to another base model; the core's `restart` is set when it is to begin anew on it.

    What the other model needs lower of the `[training.settings]` is lowered with it.
    """

    def __init__(self, core: Core, scheduler: Scheduler, memory: MemorySharing) -> None:
        self._core, self._scheduler, self._memory = core, scheduler, memory
        self._config, self._restart = core.config, core.restart
        self._task: asyncio.Task[Switched] | None = None

    async def to(self, reference: str, *, bare: bool = False) -> Switched:
        """Switch to the model that `reference` names in the config's way; `bare` replays nothing.

        Raises GoodbotError with a sentence; then, and with `done` False, nothing has changed.
        """
        if self._restart.is_set() or (self._task is not None and not self._task.done()):
            raise UsageError(Worded("a switch to another model is already under way"))
        self._task = asyncio.create_task(self._to(reference, bare), name="model switch")
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self.stop()
            raise
        if self._task.cancelled():
            raise TrainingError(Worded("the switch was stopped: nothing has changed"))
        return self._task.result()

    async def stop(self) -> bool:
        """End a switch under way; False when there is none, or it is done already."""
        if self._task is None or self._task.done():
            return False
        await end_tasks(self._task)
        return self._task.cancelled()

    async def _to(self, reference: str, bare: bool) -> Switched:
        from goodbot.inference.models import choose  # commands that run without a daemon do not load it

        new = models.resolve(reference, {}, demo=False)
        self._require_another(new)
        cost = await asyncio.to_thread(choose.cost, new.path, self._core.backend.name)  # it runs a program
        limits = choose.limits(cost, self._core.settings)
        other = self._core.on(new, limits)
        registry = other.versions(Rehearsal)
        usable = await registry.usable_ancestor(await registry.active())
        await registry.prepare(usable)  # before a training costs time
        reason = ""
        if not bare:
            verdict = await self._replay(other, Trainer(other, registry, self._memory), first=usable == BASE)
            reason = verdict.reason
            if verdict.state == "activated":
                usable = verdict.version
            # What it learnt earlier has passed a gate of its own; a bare base has not.
            elif usable == BASE or verdict.state not in ("refused", "skipped"):
                return Switched(done=False, model=new.name, version=BASE, reason=reason)
        self._commit(reference, limits)
        logger.info("%s answers from now on (v%d)", new.name, usable)
        return Switched(done=True, model=new.name, version=usable, reason=reason)

    def _require_another(self, new: ResolvedModel) -> None:
        if new.path == self._core.model.path:
            raise UsageError(Worded("{name} is the model that answers already", name=new.name))
        if new.name == self._core.model.name:  # their adapters and ratings could not be told apart
            same = "both models are named {name}: rename the directory {path} and try again"
            raise UsageError(Worded(same, name=new.name, path=new.path))

    async def _replay(self, on: Core, trainer: Trainer, *, first: bool) -> RunOutcome:
        """Train on what was rated on other models. A model that has learnt waits for a whole round."""
        least = _LEAST if first else self._config.training.min_ratings
        count = await on.store.read(lambda db: training_pool.replayable(db, on.pool))
        if count < least:
            ending = (because("ended_few", count=count, needed=least),)
            return RunOutcome(run=0, state="skipped", ending=ending)
        cause = (because("begun_switch", model=on.model.name),)
        run = await self._scheduler.start(cause, replay_on=trainer)
        try:
            await asyncio.wait([run])
        except asyncio.CancelledError:
            await self._scheduler.stop()
            raise
        if run.cancelled():
            raise TrainingError(Worded("the replay was stopped: nothing has changed"))
        return run.result()

    def _commit(self, reference: str, limits: Mapping[str, int]) -> None:
        """The last step, in one piece."""
        file = ConfigFile(self._config.home, self._config.path)
        file.set("model.path", reference)
        for key, tokens in limits.items():
            file.set(f"training.settings.{key}", tokens)
        file.save()
        self._restart.set()
