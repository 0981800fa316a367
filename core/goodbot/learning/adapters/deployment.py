# SPDX-License-Identifier: Apache-2.0
"""Which versions are loaded on the server, and whether it answers by them: load → probe → proof → unload."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import Any

from goodbot.api.fingerprint import ServedAs
from goodbot.api.model import ResolvedModel
from goodbot.api.plugins import PluginHost
from goodbot.api.server import BASE, Server
from goodbot.base.clock import Clock
from goodbot.base.errors import AdapterError, GoodbotError, ServerError
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import said_by
from goodbot.inference.servers.health import HealthMonitor, probe
from goodbot.learning.adapters.catalogue import Catalogue
from goodbot.store import Store, canaries

logger = logging.getLogger(__name__)

_SOON_SECONDS = 1.0
"""An old version is gone by then, unless a long answer is still written by it."""


class NotServedError(ServerError):
    """The server took an adapter and answers as if it had none."""


class Deployment(Catalogue):
    """The versions of one scope on the server that serves one of them, and the canary beside it."""

    def __init__(
        self,
        *,
        store: Store,
        server: Server,
        root: Path,
        plugins: PluginHost,
        clock: Clock,
        scope: str,
        model: ResolvedModel,
        share: float = 0.0,
    ) -> None:
        """`share` of the conversations meets a new version first (`[serving] canary`)."""
        super().__init__(store=store, root=root, scope=scope, model=model)
        self._server = server
        self._plugins = plugins
        self._clock = clock
        self.share = share
        self.health = HealthMonitor(server)
        """What is known of whether the server really serves what it should."""
        self._swap = asyncio.Lock()
        self._beside: Counter[int] = Counter()
        """Versions that somebody uses beside what is served (`beside`)."""
        self._leaving: set[asyncio.Task[None]] = set()
        self.canary = BASE
        """The version that is loaded for a share of the conversations; `BASE`: none is."""
        self.lives = 0
        """How often the server was started."""

    async def start(self) -> None:
        """Start the server with the base model, while nothing is loaded or activated. Raises ServerError."""
        self.health.forget()
        await self._server.start()
        self.lives += 1

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
            await asyncio.wait([self.leaves(version, self._unload(version))], timeout=_SOON_SECONDS)

    def leaves(self, version: int, unloading: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A version is on its way out; that goes on by itself, until the server goes down."""
        task = asyncio.create_task(unloading, name=f"unloading v{version}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _unload(self, version: int) -> None:
        try:
            await self._server.unload(version)
        except GoodbotError as error:
            logger.info("v%d stays loaded: %s", version, error)

    async def stop(self) -> None:
        """Wait for no answer of a version that is on its way out: the server goes down."""
        await end_tasks(*self._leaving)

    def takes_turns(self) -> tuple[asyncio.Lock, Counter[int], set[asyncio.Task[None]]]:
        """For another registry on this server: whose turn it is there, what is used beside, what leaves."""
        return self._swap, self._beside, self._leaving

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

    async def _stands(self, version: int, *, serve: bool) -> bool:
        """Whether a version is whole and, with `serve`, ready on the server as itself from the start.

        Raises AdapterError, NotServedError or ServerError.
        """
        directory = await self.path(version)
        if not serve:
            return True
        if await self._server.served() != version:
            await self.prepare(version)
            return True
        return await self._prove(version, directory, thorough=False)
