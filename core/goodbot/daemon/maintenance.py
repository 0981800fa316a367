# SPDX-License-Identifier: Apache-2.0
"""What is put in order again and again, whoever has disturbed it: adapters, server, open turns, expiry."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from goodbot.base.errors import boundary
from goodbot.base.orphans import Orphans
from goodbot.commands.services import Services
from goodbot.daemon.alerts import Alerts
from goodbot.daemon.connectors import ConnectorManager
from goodbot.learning.adapters import retention
from goodbot.store.retention import expire

logger = logging.getLogger(__name__)

_SECONDS = 30.0
_SERVER_SECONDS = 20.0
"""A server that serves something else is to be noticed within 30 s, and a look takes a while, too."""
_OPEN_SECONDS = 86400.0
"""Reactions on answers of the last day are read again."""


class Maintenance:
    """Level-triggered: it looks at what is there, so a crash only delays it."""

    def __init__(self, services: Services, connectors: ConnectorManager) -> None:
        self._services, self._connectors, self._clock = services, connectors, services.clock
        self._alerts = Alerts(services)
        self._orphans = Orphans()

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
        if self._services.memory.away:
            return
        with boundary(logger, "reconciling the model server"):
            await self._services.presence.tend()
        with boundary(logger, "the canary"):
            await self._services.canary.look()
        with boundary(logger, "adapters"):
            await self._tend_adapters(self._clock.now())

    async def once(self) -> None:
        """One round of all the rest, likewise."""
        s, now = self._services, self._clock.now()
        with boundary(logger, "reconciling the connectors"):
            await self._connectors.reconcile(now - _OPEN_SECONDS)
        with boundary(logger, "notices"):
            await s.notices.post()
        with boundary(logger, "expiry"):
            if s.steady.look():
                await expire(s.store, now, unrated_days=s.config.privacy.unrated_days)
        with boundary(logger, "erasing"):
            await s.eraser.sweep()
        with boundary(logger, "alerts"):
            await self._alerts.look()
        with boundary(logger, "orphans"):
            await asyncio.to_thread(self._orphans.bury)

    async def _tend_adapters(self, now: float) -> None:
        s = self._services
        await retention.go_live(s.store, s.registry)
        if not s.scheduler.training:  # which may read an old version, to weigh what it wrote
            await retention.prune(s.store, s.registry, keep=s.config.adapters.keep, now=now)
            await s.scopes.tend(s.config.adapters.keep)
