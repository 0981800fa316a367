# SPDX-License-Identifier: Apache-2.0
"""Which version answers: files → row → load → probe → proof → compare-and-set of the pointer."""

from __future__ import annotations

import logging

import aiosqlite

from goodbot.api.server import BASE
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.worded import Worded, said_by
from goodbot.inference.servers.health import Righted
from goodbot.learning.adapters import lineage
from goodbot.learning.adapters.deployment import Deployment, NotServedError
from goodbot.store import adapters, canaries
from goodbot.store.commit_queue import Operation

logger = logging.getLogger(__name__)


class _NotMovedError(Exception):
    """Rolls the transaction back in which the pointer would have moved."""


class AdapterRegistry(Deployment):
    """The adapter versions of one scope and the server that should serve the active one."""

    async def activate(self, version: int, *, expected: int, guard: Operation[bool] | None = None) -> bool:
        """Load, probe, prove, move the pointer from `expected` to `version`, switch over, unload the old.

        `guard` runs in the transaction that moves the pointer; False from it leaves everything
        as it was, and so does a pointer that somebody else has moved or pinned, or a version that
        has been tainted meanwhile: then this returns False.
        Raises AdapterError or ServerError; then, too, the old one goes on.
        """

        async def move(db: aiosqlite.Connection) -> None:
            moved = await adapters.move_pointer(
                db, self.scope, self.model, expected, version, self._clock.now()
            )
            pinned = version != expected and await adapters.stays(db, expected)
            if not moved or pinned or await adapters.tainted(db, version):
                raise _NotMovedError
            if guard is not None and not await guard(db):
                raise _NotMovedError
            await canaries.end(db, self.scope, self.model, version, self._clock.now())
            for waiting in lineage.settled(await adapters.all_of(db, self.scope), expected, version):
                await adapters.hold(db, waiting, "")

        async with self._swap:
            proven = self.health.found
            try:
                await self.prepare(version)
                await self._store.write(move)
            except BaseException as error:  # who is cancelled leaves nothing loaded either
                self.health.found = proven
                await self._drop(version)
                if isinstance(error, _NotMovedError):
                    return False
                raise
            try:
                await self._switch_over()
            except (AdapterError, ServerError):
                logger.exception("v%d is active, but the server failed; the reconciler will retry", version)
        if version != expected:
            await self._plugins.on_adapter_activated(version, expected)
        return True

    async def otherwise(self, db: aiosqlite.Connection, version: int) -> int:
        """Which version really answers where the pointer names this one."""
        return version

    async def reconcile(self, *, fresh: bool = False) -> str:
        """Bring pointer, files and server together; returns what was wrong, empty if nothing.

        A pointer whose files do not verify, or whose version the server turns out not to serve, falls
        back along the lineage to one of which both is right. That a `fresh` server serves nothing
        yet is not wrong.
        """
        async with self._swap:
            active, target, wrong = await self._reconcile(fresh)
        if wrong:
            self.health.righted = Righted(at=self._clock.now(), what=wrong)
        if target != active:
            await self._plugins.on_adapter_activated(target, active)
        return wrong

    async def _reconcile(self, fresh: bool) -> tuple[int, int, str]:
        """`(the pointer before, the pointer now, what was wrong)`."""
        wrong, unserved = "", False
        if not self._server.healthy():
            await self.start()
            wrong = Worded("the model server was down and has been started again")
        active = target = await self.active()
        while target != BASE:
            try:
                if not await self._stands(target, serve=await self.wanted() == active):
                    anew = Worded("v{version} was not really served, and was loaded anew", version=target)
                    wrong = wrong or anew
                break
            except (AdapterError, NotServedError) as error:
                logger.error("v%d cannot be used: %s", target, error, extra={"version": target})
                wrong = said_by(error)
                unserved = unserved or (target == active and isinstance(error, NotServedError))
                await self._drop(target)
                target = await self.clean_ancestor(await self._parent(target))
        if target != active:
            move = (self.scope, self.model, active, target, self._clock.now())
            await self._store.write(lambda db: adapters.fall_back(db, *move, unserved=unserved))
        if not fresh and await self._server.served() != await self.wanted():
            wrong = wrong or Worded("the server did not serve the active version")
        await self._switch_over()
        return active, target, wrong
