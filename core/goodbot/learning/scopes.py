# SPDX-License-Identifier: Apache-2.0
"""Adapters of people, channels or teams beside the shared one: who answers, and what trains.

A scope has no adapter before it has the ratings of a round; until then, and wherever its own cannot be
served, the shared one answers. Its versions hold the shared one, and what it has learnt beside that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import ChannelRef, UserRef
from goodbot.api.sentences import met
from goodbot.api.server import BASE
from goodbot.base.errors import AdapterError, GoodbotError, ServerError, boundary
from goodbot.config.sections import ScopeKind
from goodbot.learning.adapters import retention
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.adapters.scoped import ScopedRegistry
from goodbot.learning.canary import tried_in
from goodbot.learning.core import Core
from goodbot.learning.rebasing import Rebasing
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.readiness import not_yet
from goodbot.learning.training.scheduler import Scheduler
from goodbot.learning.training.trainer import Trainer
from goodbot.store import progress, runs, scopes, settings, training_pool
from goodbot.store.pools import PERSON, Pool

logger = logging.getLogger(__name__)

_LOADED, _EMBEDDED = 16, 4096
"""So many versions of scopes are loaded at most; the one that was asked the longest ago gives way. Of more
the embedded server keeps in memory what fits there, and reads the others when they are asked."""
_LOOK_SECONDS = 30.0
_OTHERS = ("ratings", "unsuccessful", "cancelled", "schedule", "plugin")
"""What the shared training waits for and others need not wait for."""


class Scopes:
    """Sends people to the version of their scope, and trains what is due beside the shared one."""

    def __init__(self, core: Core, registry: AdapterRegistry, memory: MemorySharing) -> None:
        """`registry` has the shared versions."""
        self._core, self._shared, self._memory = core, registry, memory
        self._store, self._server, self._clock = core.store, core.server, core.clock
        self.kind: ScopeKind = core.config.training.scopes
        self._loaded: dict[int, object] = {}
        """Version → in which life of the server it was loaded; whoever was asked last is last."""
        self._most = _EMBEDDED if core.spec.name == "embedded" else _LOADED
        self._rebasing = Rebasing(core, self.registry)

    async def of(self, channel: ChannelRef, user: UserRef) -> str:
        """The key of the scope beside the shared one that an answer there has; empty: none."""
        if self.kind == "shared":
            return ""
        return await self._store.read(lambda db: scopes.of(db, self.kind, channel, person(user)))

    async def answering(self, channel: ChannelRef, user: UserRef) -> str:
        """The key of the scope whose version answers this person there, if it has one; empty: the shared."""
        key = await self.of(channel, user)
        return key if scopes.answers_in(key, channel) else ""

    async def version_for(self, channel: ChannelRef, user: UserRef) -> int | None:
        """The version that answers this person there; None: the one that answers everybody."""
        if key := await self.answering(channel, user):
            version = await self.active(key)
            if version != BASE and await self._ready(key, version):
                return version
        return tried_in(self._shared, channel)

    async def active(self, key: str) -> int:
        """The version of a scope's own that answers there; `BASE`: the shared one does."""
        return await self._store.read(lambda db: self._wanted(db, key))

    async def _wanted(self, db: aiosqlite.Connection, key: str) -> int:
        off = await settings.switch(db, "off")
        return BASE if off else await scopes.active(db, key, self._core.model.name)

    async def _ready(self, key: str, version: int) -> bool:
        """Whether the server has that version now; where it was not asked for of late, it is loaded.

        Nobody else waits for that.
        """
        if self._loaded.get(version) != self._life:
            try:
                await self._server.load(version, await self.registry(key).path(version))
            except (AdapterError, ServerError) as error:
                logger.warning("v%d does not answer: %s", version, error, extra={"version": version})
                return False
        self._note(version)
        return True

    def missed(self, version: int | None) -> None:
        """Another version has answered in its place: it is loaded anew when somebody asks it next."""
        if version is not None:
            self._loaded.pop(version, None)

    def _note(self, version: int) -> None:
        """It is loaded, and was the last one that somebody wanted."""
        self._loaded.pop(version, None)
        self._loaded[version] = self._life
        for oldest in list(self._loaded)[: -self._most]:
            self._let_go(oldest)

    @property
    def _life(self) -> object:
        """Another one once the server was started again, or had lost what it should have."""
        return self._shared.lives, self._shared.health.righted

    def _let_go(self, version: int) -> None:
        """Whatever it is still writing ends first; nobody waits for that."""
        del self._loaded[version]
        self._shared.leaves(version, self._unload(version))

    async def _unload(self, version: int) -> None:
        if version not in self._loaded:  # else somebody has asked it since
            with contextlib.suppress(GoodbotError):
                await self._server.unload(version)

    def on(self, key: str) -> Core:
        """The same core, for what a scope learns."""
        return dataclasses.replace(self._core, pool=self.pool(key))

    def pool(self, key: str) -> Pool:
        """What may be learnt in a scope; of an empty key in the shared one."""
        here = not self._core.backend.remote  # else somebody's words would go to another machine
        return scopes.pool(self._core.pool, key, here=here) if key else self._core.pool

    def registry(self, key: str) -> AdapterRegistry:
        """The versions of a scope; of an empty key the shared ones."""
        return self.own(key) if key else self._shared

    def own(self, key: str) -> ScopedRegistry:
        """The versions of a scope beside the shared one."""
        found = self.on(key).versions(ScopedRegistry)
        found.join(self._shared, loaded=self._note, dropped=self.missed)
        return found

    async def next(self) -> Trainer | None:
        """What trains the scope whose turn it is: one that was interrupted, or has the most new ratings."""
        if self.kind == "shared":
            return None
        model, enough = self._core.model.name, self._core.config.training.min_ratings
        for key in await self._store.read(lambda db: scopes.waiting(db, model, self.kind, enough)):
            if await self._store.read(lambda db, key=key: self._is_due(db, key, enough)):
                return Trainer(self.on(key), self.registry(key), self._memory, ask=self._asks(key))
        return None

    def _asks(self, key: str) -> str:
        """When somebody is asked which of a scope's versions is better; of channels and teams nobody is."""
        return self._core.config.serving.ask if key.startswith(PERSON) else "never"

    async def _is_due(self, db: aiosqlite.Connection, key: str, enough: int) -> bool:
        pool, config = self.pool(key), self._core.config.training
        if await progress.underway(db, key) is not None:
            return True
        last = next(iter(await runs.last_runs(db, key, model=pool.model)), None)
        if not_yet(config.schedule, self._clock.now(), last.started_at if last else None):
            return False
        if last is not None and last.state in ("failed", "refused"):  # the same is not tried over and over
            fresh = max(1, enough // 5)
            if await runs.labels_since(db, pool, last.id, fresh) < fresh:
                return False
        return await training_pool.available(db, pool, enough) >= enough

    async def loop(self, scheduler: Scheduler) -> None:
        """Start trainings of scopes as they fall due, until cancelled."""
        while self.kind != "shared":
            await self._clock.sleep(_LOOK_SECONDS)
            with boundary(logger, "a training beside the shared one could not start"):
                await self.look(scheduler)

    async def look(self, scheduler: Scheduler) -> bool:
        """Start what is due, if nothing else trains or is about to; whether it did.

        Where nothing is due, one that is behind is put on the shared version of now.
        """
        await self.tidy()
        readiness = await scheduler.readiness()
        if scheduler.training or readiness.due or readiness.condition.name not in _OTHERS:
            return False
        config = self._core.config.training
        quiet = self._clock.monotonic() >= scheduler.last_talk + config.idle_seconds
        if not quiet or scheduler.disk.missing() or await scheduler.pressure():
            return False
        enough = config.min_ratings
        trainer = None if self._core.plugins.veto_training(enough) else await self.next()
        if trainer is None and not scheduler.training:
            await self._rebasing.look(lambda: scheduler.training)
        if trainer is None or scheduler.training:
            return False
        await scheduler.start(
            [met("enough", said="", available=enough).reason()], at_least=enough, on=trainer, automatic=True
        )
        return True

    async def tend(self, keep: int) -> None:
        """Keep the files of so many versions of each scope; what waited for the model goes live.

        Raises OSError, ServerError, StoreError.
        """
        for key in await self._store.read(scopes.held_up) if self.kind != "shared" else ():
            await retention.go_live(self._store, self.registry(key))
        for key in await self._store.read(lambda db: scopes.surplus(db, keep)):
            await retention.prune(self._store, self.registry(key), keep=keep, now=self._clock.now())

    async def tidy(self) -> None:
        """What answers nobody any more, since somebody is forgotten perhaps, does not stay loaded."""
        wanted = await self._store.read(scopes.answering)
        for version in [one for one in self._loaded if one not in wanted]:
            self._let_go(version)
