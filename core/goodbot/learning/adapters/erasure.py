# SPDX-License-Identifier: Apache-2.0
"""After forgetting: what was exported, what connectors keep, the files of adapters, and what
deletion leaves lying in the database's file.

All is level-triggered, so that a crash or a busy moment only delays it: connectors are asked until
they have forgotten, adapters are erased once nothing serves them, exports are deleted and the
database is rewritten while the switch `erase` is set. It is set only where something was deleted, and
the database is rewritten at most once in ten minutes, for all who ask: ratings wait meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from pathlib import Path

from goodbot.api.connector import Connector
from goodbot.api.sentences import clause_of
from goodbot.api.server import BASE, Server
from goodbot.base import trees
from goodbot.base.clock import Clock
from goodbot.base.errors import ServerError, boundary
from goodbot.config.layout import beside
from goodbot.config.lock import holder
from goodbot.learning.adapters import retention
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.store import Store, adapters, backup, exporting, forgetting, inbox, settings, workshop

logger = logging.getLogger(__name__)

REST = 600.0
"""Seconds from one rewriting of the database to the next; the switch waits for it, also over a restart."""


def delete_replaced(home: Path) -> list[Path]:
    """Delete what restores have replaced beside the state directory; returns what is gone.

    That of a restore under way stays: it is gone when that ends. Raises OSError.
    """
    gone = [path for path in beside(home) if not holder(path)[0]]
    for path in gone:
        trees.remove(path)
    return gone


class Eraser:
    """Brings the state directory to where no forgotten word is in it."""

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        server: Server,
        clock: Clock,
        connectors: Mapping[str, Connector],
        home: Path,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._home = home
        self._registry = registry
        self._server = server
        self._clock = clock
        self._cleared = ""
        """What the switch said when the files were deleted: those that were made since hold nothing."""
        self._rewritten = -math.inf
        self.copying = asyncio.Lock()
        """Held by whoever copies words out of the database, so that a sweep finds the copy."""

    async def sweep(self) -> list[int]:
        """Do what can be done now; returns the versions whose files are gone.

        Raises StoreError, OSError.
        """
        async with self.copying:
            await self._tell_connectors()
            if seen := await self._store.read(lambda db: settings.switch(db, forgetting.ERASE)):
                await self._rewrite(seen)
            return await self._erase_adapters()

    async def _tell_connectors(self) -> None:
        for who in await self._store.read(forgetting.to_tell):
            name, _, user = who.partition(":")
            if (connector := self._connectors.get(name)) is not None:
                with boundary(logger, "%s has not forgotten somebody yet", name):
                    before = await self._store.read(lambda db, name=name: inbox.kept(db, name))
                    await connector.forget(user)
                    after = await self._store.read(lambda db, name=name: inbox.kept(db, name))
                    await self._store.write(
                        lambda db, who=who, deleted=before != after: forgetting.told(db, who, deleted=deleted)
                    )

    async def _rewrite(self, seen: str) -> None:
        if self._cleared != seen:
            await asyncio.to_thread(exporting.clear, self._home)
            await asyncio.to_thread(workshop.sweep, self._home)
            # A copy to go back to, made before a change of the schema, holds the old words too.
            await asyncio.to_thread(backup.expire, self._store.path, math.inf)
            self._cleared = seen
        if self._clock.monotonic() - self._rewritten < REST:
            return
        await self._store.compact()
        self._rewritten, self._cleared = self._clock.monotonic(), ""
        await self._store.write(lambda db: forgetting.wiped(db, seen))
        logger.info("the database was rewritten without what was forgotten")

    async def _erase_adapters(self) -> list[int]:
        erased: list[int] = []
        served = {await self._served(), self._registry.canary}
        rows = await self._store.read(adapters.to_erase)
        for row in rows:
            if row.version in served:
                continue
            await retention.erase(self._store, self._registry.root, row, self._clock.now())
            logger.info("v%d is erased: %s", row.version, clause_of(row.tainted))
            erased.append(row.version)
        return erased

    async def _served(self) -> int:
        """What the model server holds at present; it may be down."""
        try:
            return await self._server.served() if self._server.healthy() else BASE
        except ServerError:
            return BASE
