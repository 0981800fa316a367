"""What is put in order again and again, whoever has disturbed it: adapters, server, open turns, expiry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from goodbot.access.notices import Notices
from goodbot.base.clock import Clock
from goodbot.base.errors import boundary
from goodbot.config import Config
from goodbot.conversation.presence import Presence
from goodbot.daemon.connectors import Connectors
from goodbot.learning.adapters import AdapterRegistry, retention
from goodbot.learning.adapters.erasure import Eraser
from goodbot.learning.canary import Canary
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.scheduler import Scheduler
from goodbot.store import Store
from goodbot.store.retention import expire

logger = logging.getLogger(__name__)

_SECONDS = 30.0
_SERVER_SECONDS = 20.0
"""A server that serves something else is to be noticed within 30 s, and a look takes a while, too."""
_OPEN_SECONDS = 86400.0
"""Reactions on answers of the last day are read again."""


class Maintenance:
    """Level-triggered: it looks at what is there, so a crash only delays it."""

    def __init__(
        self,
        *,
        config: Config,
        store: Store,
        clock: Clock,
        registry: AdapterRegistry,
        canary: Canary,
        scheduler: Scheduler,
        memory: MemorySharing,
        presence: Presence,
        connectors: Connectors,
        notices: Notices,
        eraser: Eraser,
    ) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._registry = registry
        self._canary = canary
        self._scheduler = scheduler
        self._memory = memory
        self._presence = presence
        self._connectors = connectors
        self._notices = notices
        self._eraser = eraser

    async def loop(self) -> None:
        """Until cancelled. The server has its own turn: no slow platform keeps it waiting."""
        async with asyncio.TaskGroup() as turns:
            turns.create_task(self._every(_SERVER_SECONDS, self.look_after_server))
            turns.create_task(self._every(_SECONDS, self.once))

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        began = self._clock.monotonic()
        while True:
            # From one beginning to the next, however long the work took in between.
            await self._clock.sleep(max(0.0, began + seconds - self._clock.monotonic()))
            began = self._clock.monotonic()
            await work()

    async def look_after_server(self) -> None:
        """Bring it together with pointer and files. What fails is logged; the rest is done all the same."""
        if self._memory.away:
            return
        with boundary(logger, "reconciling the model server"):
            await self._presence.tend()
        with boundary(logger, "the canary"):
            await self._canary.look()
        with boundary(logger, "adapters"):
            await self._tend_adapters(self._clock.now())

    async def once(self) -> None:
        """One round of all the rest, likewise."""
        now = self._clock.now()
        with boundary(logger, "reconciling the connectors"):
            await self._connectors.reconcile(self._store, now - _OPEN_SECONDS)
        with boundary(logger, "notices"):
            await self._notices.post()
        with boundary(logger, "expiry"):
            await expire(self._store, now, unrated_days=self._config.privacy.unrated_days)
        with boundary(logger, "erasing"):
            await self._eraser.sweep()

    async def _tend_adapters(self, now: float) -> None:
        await retention.go_live(self._store, self._registry)
        if not self._scheduler.training:  # which may read an old version, to weigh what it wrote
            await retention.prune(self._store, self._registry, keep=self._config.adapters.keep, now=now)
