"""After forgetting: the files of adapters, and what deletion leaves lying in the database's file.

Both are level-triggered, so that a crash or a busy moment only delays them: adapters are erased
once nothing serves them, the database is rewritten while the switch `erase` is set.
"""

from __future__ import annotations

import asyncio
import logging
import shutil

from goodbot.adapters import AdapterRegistry
from goodbot.clock import Clock
from goodbot.errors import ServerError
from goodbot.server import BASE, Server
from goodbot.store import Store, access, backup, forgetting

logger = logging.getLogger(__name__)


class Eraser:
    """Brings the state directory to where no forgotten word is in it."""

    def __init__(
        self, *, store: Store, registry: AdapterRegistry, server: Server, clock: Clock
    ) -> None:
        self._store = store
        self._registry = registry
        self._server = server
        self._clock = clock
        self._working = asyncio.Lock()

    async def sweep(self) -> list[int]:
        """Do what can be done now; returns the versions whose files are gone.

        Raises StoreError, OSError.
        """
        async with self._working:
            if await self._store.read(lambda db: access.switch(db, forgetting.ERASE)):
                await self._rewrite()
            return await self._erase_adapters()

    async def _rewrite(self) -> None:
        # A copy to go back to, made before a change of the schema, holds the old words too.
        await asyncio.to_thread(backup.expire, self._store.path, float("inf"))
        await self._store.compact()
        await self._store.write(lambda db: access.set_switch(db, forgetting.ERASE, ""))
        logger.info("the database was rewritten without what was forgotten")

    async def _erase_adapters(self) -> list[int]:
        erased: list[int] = []
        served = await self._served()
        rows = await self._store.read(lambda db: forgetting.to_erase(db, self._registry.scope))
        for row in rows:
            if row.version == served:
                continue
            path = self._registry.root / row.directory
            if path.exists():
                await asyncio.to_thread(shutil.rmtree, path)
            await self._store.write(
                lambda db, v=row.version: forgetting.set_erased(db, v, self._clock.now())
            )
            logger.info("v%d is erased: %s", row.version, row.tainted)
            erased.append(row.version)
        return erased

    async def _served(self) -> int:
        """What the model server holds at present; it may be down."""
        try:
            return await self._server.served() if self._server.healthy() else BASE
        except ServerError:
            return BASE
