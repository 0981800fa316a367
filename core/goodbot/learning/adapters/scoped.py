# SPDX-License-Identifier: Apache-2.0
"""The versions of one scope beside the shared one: they rest on its versions, and answer beside it.

Such a version's files hold the sum of a shared one and of what the scope has learnt, so that a server takes
it as one adapter. Its row says of which shared one (`metrics`, `shared`); 0: it is the own part alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiosqlite

from goodbot.api.server import BASE
from goodbot.base.errors import AdapterError
from goodbot.learning.adapters import lineage
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.store import adapters, scopes
from goodbot.store.adapters import SHARED_PART, AdapterRow
from goodbot.store.pools import SHARED


class ScopedRegistry(AdapterRegistry):
    """As `AdapterRegistry`, but what the server serves everybody stays as it is."""

    _main: AdapterRegistry
    _noted: Callable[[int], None]
    _dropped: Callable[[int], None]

    def join(
        self, main: AdapterRegistry, *, loaded: Callable[[int], None], dropped: Callable[[int], None]
    ) -> None:
        """Stand beside the shared versions (`main`), on one server.

        `loaded` is called with a version that is loaded from now on, whether it goes live or not; `dropped`
        with one that is not any more.
        """
        self._main, self._noted, self._dropped = main, loaded, dropped
        self._swap, self._beside, self._leaving = main.takes_turns()

    async def prepare(self, version: int) -> None:
        """See `AdapterRegistry.prepare`."""
        await super().prepare(version)
        if version != BASE:
            self._noted(version)

    async def reconcile(self, *, fresh: bool = False) -> str:
        """As `AdapterRegistry.reconcile`, of what the server serves everybody."""
        before = self._main.lives
        try:
            return await self._main.reconcile(fresh=fresh)
        finally:
            self.lives += self._main.lives - before

    async def otherwise(self, db: aiosqlite.Connection, version: int) -> int:
        """See `AdapterRegistry.otherwise`: before a scope has a version, the shared one answers."""
        return version or await scopes.shared(db, self.model)

    async def place(self, version: int) -> int:
        """What the scope's pointer says while this version answers there; of a shared one it names none."""
        if version == BASE:
            return BASE
        return version if (await self.row(version)).scope == self.scope else BASE

    async def _drop(self, version: int) -> None:
        """What answers there stays loaded, and so does the canary beside it."""
        if version in (BASE, self._main.canary, await self.active()):
            return
        self._dropped(version)
        await super()._drop(version)

    async def rows(self) -> list[AdapterRow]:
        """Its own versions and the shared ones that they rest on, oldest first."""
        return await self._store.read(lambda db: adapters.all_of(db, SHARED, self.scope))

    async def head(self) -> int:
        """The version on which its next training goes on: of its own, or else what answers everybody."""
        own = await self._store.read(lambda db: adapters.all_of(db, self.scope))
        return lineage.head(own, await self.active()) or await self.shared()

    async def shared(self) -> int:
        """The shared version that answers everybody, or the nearest before it that may."""
        return await self.usable_ancestor(
            await self._store.read(lambda db: adapters.pointer(db, SHARED, self.model))
        )

    async def begins(self, parent: int) -> dict[str, Any]:
        """As of any version; and which shared one stands still under what is trained (`frozen`).

        `rests_on` is that under which the parent was trained. One whose files are gone is that no more: then
        the scope begins anew.
        """
        row = await self.row(parent) if parent != BASE else None
        if row is not None and row.scope == self.scope and SHARED_PART not in row.metrics:
            return await super().begins(parent)  # it was trained elsewhere, all of it as one
        own, rests_on = None, BASE
        shared = parent if row is not None and row.scope != self.scope else await self.shared()
        if row is not None and row.scope == self.scope:
            own, rests_on = str(await self.path(parent)), int(row.metrics[SHARED_PART])
        try:
            before = str(await self.path(rests_on)) if rests_on != BASE else None
        except AdapterError:
            own = before = None
        frozen = str(await self.path(shared)) if shared != BASE else None
        return {"parent": own, "frozen": frozen, "rests_on": before, "shared": shared}

    async def _switch_over(self) -> None:
        """Nothing is to be served otherwise: whoever asks there is sent to a version that is loaded."""
