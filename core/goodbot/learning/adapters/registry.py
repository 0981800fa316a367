# SPDX-License-Identifier: Apache-2.0
"""Which version answers: files → row → load → probe → proof → compare-and-set of the pointer."""

from __future__ import annotations

import logging

import aiosqlite

from goodbot.api.fingerprint import ServedAs
from goodbot.api.model import ResolvedModel
from goodbot.api.plugins import PluginHost
from goodbot.api.server import BASE, Server
from goodbot.base.clock import Clock
from goodbot.base.errors import AdapterError, GoodbotError, ServerError
from goodbot.base.worded import Worded, said_by
from goodbot.inference.servers.health import HealthMonitor, Righted, probe
from goodbot.learning.adapters import lineage
from goodbot.learning.adapters.catalogue import Catalogue
from goodbot.store import Store, adapters, canaries
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

    async def prepare(self, version: int) -> None:
        """Load a version beside what is served, see that it answers, and as itself. Raises as `activate`."""
        if version != BASE:
            directory = await self.path(version)
            await self._server.load(version, directory)
            await probe(self._server, version)
            await self._prove(version, directory, thorough=True)
            await self.path(version)  # a server of the owner's has read the files after our check

    async def _prove(self, version: int, directory: Path, *, thorough: bool, keep: bool = True) -> bool:
        """See that a loaded version is what answers; one that is not is put right once.

        Whether it was right from the start; with `keep` `health` says so from now on.
        Raises NotServedError, AdapterError or ServerError.
        """
        found = await self.health.examine(version, directory, thorough=thorough)
        right = not self.health.doubts(found)
        if not right:
            logger.warning("%s; it is loaded anew", found.why, extra={"version": version})
            if await self._server.served() == version:
                await self._server.reload(version, directory)
            else:
                if version == self.canary:
                    self.canary = BASE  # it would never be idle
                await self._server.unload(version)
                await self._server.load(version, directory)
            found = await self.health.examine(version, directory, thorough=True)
        if keep:
            self.health.keep(found)
        if found.verdict is ServedAs.BASE:
            raise NotServedError(found.why)
        return right

    async def _drop(self, version: int) -> None:
        """What is neither served nor used need not stay loaded.

        Whatever it is still writing ends first; nobody waits here, so no next change of mind does either.
        """
        used = version in (BASE, self.canary) or self._beside[version] > 0
        with contextlib.suppress(GoodbotError):
            used = used or await self._server.served() == version
        if not used:
            task = asyncio.create_task(self._unload(version), name=f"unloading v{version}")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
            await asyncio.wait([task], timeout=_SOON_SECONDS)

    async def _unload(self, version: int) -> None:
        try:
            await self._server.unload(version)
        except GoodbotError as error:
            logger.info("v%d stays loaded: %s", version, error)

    async def stop(self) -> None:
        """Wait for no answer of a version that is on its way out: the server goes down."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def beside(self, *versions: int) -> AsyncGenerator[None]:
        """For as long as the body these versions are loaded, too; what is served goes on undisturbed.

        Raises AdapterError or ServerError.
        """
        self._beside.update(versions)
        try:
            async with self._swap:
                for version in versions:
                    if version != BASE:
                        await self._server.load(version, await self.path(version))
            yield
        finally:
            self._beside.subtract(versions)
            async with self._swap:
                for version in set(versions):
                    await self._drop(version)

    @contextlib.asynccontextmanager
    async def still(self) -> AsyncGenerator[frozenset[int]]:
        """For as long as the body no version is loaded or activated; yields those that are used beside."""
        async with self._swap:
            yield frozenset({*+self._beside, self.canary})

    async def refresh(self) -> None:
        """After `pause all` or `resume`: serve what is wanted now. Nothing to do while no server runs."""
        async with self._swap:
            if self._server.healthy():
                await self._switch_over()

    async def _switch_over(self) -> None:
        """Make the server serve what is wanted, and the canary beside it; forget what it served."""
        wanted, before = await self.wanted(), await self._server.served()
        if wanted != before:
            if wanted != BASE:
                await self._server.load(wanted, await self.path(wanted))
            await self._server.activate(wanted)
        if self.health.found.version != wanted:
            self.health.forget()
        await self._let_in(await self.wanted_canary())
        if wanted != before:
            await self._drop(before)

    async def _let_in(self, canary: int) -> None:
        """Load the canary that should be there, and forget another one. It must not disturb the rest."""
        before = self.canary
        if canary != before:  # else its conversations stay with it while it is looked at
            self.canary = BASE
        if canary != BASE:
            try:
                directory = await self.path(canary)
                await self._server.load(canary, directory)
                if before != canary:
                    await probe(self._server, canary)
                await self._prove(canary, directory, thorough=before != canary, keep=False)
                self.canary = canary
            except (AdapterError, NotServedError) as error:
                self.canary = BASE
                why, now = said_by(error), self._clock.now()
                logger.error("v%d is no canary: %s", canary, error, extra={"version": canary})
                await self._store.write(lambda db: canaries.fail(db, canary, why, now))
                await self._drop(canary)
            except ServerError as error:
                self.canary = BASE
                logger.warning("v%d is no canary for now: %s", canary, error)
        if before != canary:
            await self._drop(before)

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

    async def _stands(self, version: int, *, serve: bool) -> bool:
        """Whether a version is whole and, with `serve`, served as itself at once. Raises as `prepare`."""
        directory = await self.path(version)
        if not serve:
            return True
        if await self._server.served() != version:
            await self.prepare(version)
            return True
        return await self._prove(version, directory, thorough=False)
