"""What is put in order every 30 s, whoever has disturbed it: adapters, server, open turns, expiry."""

from __future__ import annotations

import logging

from goodbot.adapters import AdapterRegistry, retention
from goodbot.clock import Clock
from goodbot.config import Config
from goodbot.errors import boundary
from goodbot.expiry import expire
from goodbot.hosts import Connectors
from goodbot.people.erasure import Eraser
from goodbot.people.notices import Notices
from goodbot.serving.canary import Canary
from goodbot.store import Store
from goodbot.training.scheduler import Scheduler
from goodbot.training.tenancy import Tenancy

logger = logging.getLogger(__name__)

_SECONDS = 30.0
_OPEN_SECONDS = 86400.0
"""Reactions on answers of the last day are read again."""


class Housekeeping:
    """Level-triggered: it looks at what is there, so a crash only delays it."""

    def __init__(
        self, *, config: Config, store: Store, clock: Clock, registry: AdapterRegistry,
        canary: Canary, scheduler: Scheduler, tenancy: Tenancy, connectors: Connectors,
        notices: Notices, eraser: Eraser,
    ) -> None:  # fmt: skip
        self._config = config
        self._store = store
        self._clock = clock
        self._registry = registry
        self._canary = canary
        self._scheduler = scheduler
        self._tenancy = tenancy
        self._connectors = connectors
        self._notices = notices
        self._eraser = eraser

    async def loop(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(_SECONDS)
            await self.once()

    async def once(self) -> None:
        """One round. What fails is logged, and the rest is done all the same."""
        now = self._clock.now()
        if not self._tenancy.away:
            with boundary(logger, "reconciling the model server"):
                await self._reconcile()
            with boundary(logger, "the canary"):
                await self._canary.look()
            with boundary(logger, "adapters"):
                await self._tend_adapters(now)
        with boundary(logger, "reconciling the connectors"):
            await self._connectors.reconcile(self._store, now - _OPEN_SECONDS)
        with boundary(logger, "notices"):
            await self._notices.post()
        with boundary(logger, "expiry"):
            await expire(self._store, now, unrated_days=self._config.privacy.unrated_days)
        with boundary(logger, "erasing"):
            await self._eraser.sweep()

    async def _reconcile(self) -> None:
        if wrong := await self._registry.reconcile():
            logger.warning("reconciled: %s", wrong)

    async def _tend_adapters(self, now: float) -> None:
        await retention.go_live(self._store, self._registry)
        if not self._scheduler.training:  # which may read an old version, to weigh what it wrote
            await retention.prune(
                self._store, self._registry, keep=self._config.adapters.keep, now=now
            )
