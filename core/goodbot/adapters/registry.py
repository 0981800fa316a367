"""Which version answers: files → row → load → probe → compare-and-set of the pointer, in that order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from pathlib import Path

import aiosqlite

from goodbot.adapters import manifest
from goodbot.clock import Clock
from goodbot.errors import AdapterError, GoodbotError, ServerError
from goodbot.plugins import PluginHost
from goodbot.server import BASE, Generated, GenerateRequest, Server
from goodbot.store import Store, access, adapters
from goodbot.store.writer import Operation

logger = logging.getLogger(__name__)


class _NotMovedError(Exception):
    """Rolls the transaction back in which the pointer would have moved."""


_PROBE = ({"role": "user", "content": "Hello"},)


class AdapterRegistry:
    """The adapter versions of one scope and the server that should serve the active one."""

    def __init__(
        self, *, store: Store, server: Server, root: Path, plugins: PluginHost, clock: Clock,
        scope: str, model: str,
    ) -> None:  # fmt: skip
        self.root = root
        self.scope = scope
        self._model = model
        self._store = store
        self._server = server
        self._plugins = plugins
        self._clock = clock
        self._swap = asyncio.Lock()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def rows(self) -> list[adapters.AdapterRow]:
        """All versions, oldest first."""
        return await self._store.read(lambda db: adapters.all_of(db, self.scope))

    async def row(self, version: int) -> adapters.AdapterRow:
        """One version. Raises AdapterError when there is none of that number."""
        for row in await self.rows():
            if row.version == version:
                return row
        raise AdapterError(f"there is no adapter v{version}: see `goodbot adapters`")

    async def path(self, version: int) -> Path:
        """The verified directory of a version. Raises AdapterError."""
        row = await self.row(version)
        if row.model != self._model:
            raise AdapterError(f"v{version} belongs to the model {row.model}, not to {self._model}")
        return await asyncio.to_thread(manifest.verify, self.root, row.directory, row.sha256)

    async def active(self) -> int:
        """The version that the pointer names; 0 is the base model."""
        return await self._store.read(lambda db: adapters.pointer(db, self.scope, self._model))

    async def wanted(self) -> int:
        """The version that should answer now: the pointer, or the base while goodbot is `off`."""
        off = await self._store.read(lambda db: access.switch(db, "off"))
        return BASE if off else await self.active()

    async def clean_ancestor(self, version: int) -> int:
        """The nearest version at or above `version` in the lineage that is not tainted; 0 at last."""
        rows = {row.version: row for row in await self.rows()}
        while version in rows and rows[version].tainted:
            version = rows[version].parent
        return version

    async def usable_ancestor(self, version: int) -> int:
        """Like `clean_ancestor`, and its files verify; what is found broken is logged."""
        while (version := await self.clean_ancestor(version)) != BASE:
            try:
                await self.path(version)
                break
            except AdapterError as error:
                logger.error("v%d cannot be used: %s", version, error, extra={"version": version})
                version = await self._parent(version)
        return version

    async def activate(
        self, version: int, *, expected: int, guard: Operation[bool] | None = None
    ) -> bool:
        """Load, probe, move the pointer from `expected` to `version`, switch over, unload the old.

        `guard` runs in the transaction that moves the pointer; False from it leaves everything
        as it was, and so does a pointer that somebody else has moved, or a version that has been
        tainted meanwhile: then this returns False.
        Raises AdapterError or ServerError; then, too, the old one goes on.
        """

        async def move(db: aiosqlite.Connection) -> None:
            moved = await adapters.move_pointer(
                db, self.scope, self._model, expected, version, self._clock.now()
            )
            if not moved or await adapters.tainted(db, version):
                raise _NotMovedError
            if guard is not None and not await guard(db):
                raise _NotMovedError

        async with self._swap:
            try:
                await self.prepare(version)
                await self._store.write(move)
            except Exception as error:
                await self._drop(version)
                if isinstance(error, _NotMovedError):
                    return False
                raise
            try:
                await self._switch_over()
            except (AdapterError, ServerError):
                logger.exception(
                    "v%d is active, but the server failed; the reconciler will retry", version
                )
        if version != expected:
            await self._plugins.on_adapter_activated(version, expected)
        return True

    async def prepare(self, version: int) -> None:
        """Load a version beside what is served and see that it answers. Raises like `activate`."""
        if version != BASE:
            await self._server.load(version, await self.path(version))
            await self._probe(version)

    async def _probe(self, version: int) -> None:
        request = GenerateRequest(
            messages=_PROBE, max_tokens=4, temperature=1.0, seed=0, version=version
        )
        answered: int | None = None
        async with contextlib.aclosing(self._server.generate(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generated):
                    answered = piece.version
        if answered != version:
            raise ServerError(f"the server answered with v{answered} when asked for v{version}")

    async def _drop(self, version: int) -> None:
        """What was loaded and did not go live need not stay loaded."""
        with contextlib.suppress(GoodbotError):
            if version != BASE and await self._server.served() != version:
                await self._server.unload(version)

    async def refresh(self) -> None:
        """After `off` or `resume`: serve what is wanted now. Nothing to do while no server runs."""
        async with self._swap:
            if self._server.healthy():
                await self._switch_over()

    async def _switch_over(self) -> None:
        """Make the server serve what is wanted; forget what it served."""
        wanted, before = await self.wanted(), await self._server.served()
        if wanted != before:
            if wanted != BASE:
                await self._server.load(wanted, await self.path(wanted))
            await self._server.activate(wanted)
            if before != BASE:
                await self._server.unload(before)

    async def reconcile(self) -> str:
        """Bring pointer, files and server together; returns what was wrong, empty if nothing.

        A pointer whose files do not verify falls back along the lineage to one whose files do.
        """
        async with self._swap:
            active, target, wrong = await self._reconcile()
        if target != active:
            await self._plugins.on_adapter_activated(target, active)
        return wrong

    async def _reconcile(self) -> tuple[int, int, str]:
        """`(the pointer before, the pointer now, what was wrong)`."""
        wrong = ""
        if not self._server.healthy():
            await self._server.start()
            wrong = "the model server was down and has been started again"
        active = target = await self.active()
        while target != BASE:
            try:
                await self.path(target)
                if await self.wanted() == active and await self._server.served() != target:
                    await self.prepare(target)
                break
            except AdapterError as error:
                logger.error("v%d cannot be used: %s", target, error, extra={"version": target})
                wrong = str(error)
                target = await self.clean_ancestor(await self._parent(target))
        if target != active:
            await self._store.write(
                lambda db: adapters.move_pointer(
                    db, self.scope, self._model, active, target, self._clock.now()
                )
            )
        if await self._server.served() != await self.wanted():
            await self._switch_over()
            wrong = wrong or "the server did not serve the active version"
        return active, target, wrong

    async def _parent(self, version: int) -> int:
        try:
            return (await self.row(version)).parent
        except AdapterError:
            return BASE

    async def sweep(self, staging: Path, *, keep: str = "") -> None:
        """At start: remove what a killed trainer or a killed publish left behind, but what to `keep`."""
        known = {row.directory for row in await self.rows()}
        leftovers = [entry for entry in self.root.iterdir() if entry.name not in known]
        if staging.exists():
            leftovers.extend(entry for entry in staging.iterdir() if entry.name != keep)
        for entry in leftovers:
            try:
                await asyncio.to_thread(_remove, entry)
            except OSError as error:
                logger.warning("%s was left behind and cannot be removed: %s", entry, error)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
