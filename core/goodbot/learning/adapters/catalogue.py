# SPDX-License-Identifier: Apache-2.0
"""The versions of one scope as the store and the disk know them: rows, verified files, lineage."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.adapters.base import Base
from goodbot.api.model import ResolvedModel
from goodbot.api.server import BASE
from goodbot.base import trees
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded
from goodbot.learning.adapters import copies, formats, lineage
from goodbot.store import Store, adapters, canaries, settings

logger = logging.getLogger(__name__)


class Catalogue:
    """What adapters there are, which one is wanted, and where their files lie."""

    def __init__(self, *, store: Store, root: Path, scope: str, model: ResolvedModel) -> None:
        self.root = root
        self.scope = scope
        self.resolved = model
        self.model = model.name
        self._store = store
        root.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def rows(self) -> list[adapters.AdapterRow]:
        """All versions, oldest first."""
        return await self._store.read(lambda db: adapters.all_of(db, self.scope))

    async def row(self, version: int) -> adapters.AdapterRow:
        """One version. Raises AdapterError when there is none of that number."""
        for row in await self.rows():
            if row.version == version:
                return row
        raise AdapterError(Worded("there is no adapter v{version}: see `goodbot adapters`", version=version))

    async def path(self, version: int) -> Path:
        """The verified directory of a version, in clear. Raises AdapterError, ServerError."""
        return await self._place(await self.row(version))

    async def written_by(self, version: int) -> Path:
        """As `path`, for reading what a version of whichever scope has written. Raises as `path`."""
        rows = {row.version: row for row in await self._store.read(adapters.everywhere)}
        return await self._place(rows[version] if version in rows else await self.row(version))

    async def begins(self, parent: int) -> dict[str, Any]:
        """Where a training that continues this version finds it, as its job says it. Raises as `path`."""
        return {"parent": str(await self.path(parent)) if parent != BASE else None}

    async def _place(self, row: adapters.AdapterRow) -> Path:
        version = row.version
        if row.model != self.model:
            other = "v{version} belongs to the model {other}, not to {model}"
            raise AdapterError(Worded(other, version=version, other=row.model, model=self.model))
        if row.erased_at is not None:
            gone = "the files of v{version} are gone: see `goodbot adapters show {version}`"
            raise AdapterError(Worded(gone, version=version))
        return await asyncio.to_thread(self._verified, row)

    def _verified(self, row: adapters.AdapterRow) -> Path:
        return copies.verified(self.root, row.directory, row.sha256, self.base())

    def base(self) -> Base:
        """What its adapters are trained on, as it lies on the disk now. Raises AdapterError."""
        try:
            return Base.of(self.resolved)
        except OSError as error:
            wrong = Worded("the model {path} cannot be read: {why}", path=self.resolved.path, why=str(error))
            raise AdapterError(wrong) from error

    async def active(self) -> int:
        """The version that the pointer names; 0 is the base model."""
        return await self._store.read(lambda db: adapters.pointer(db, self.scope, self.model))

    async def head(self) -> int:
        """The version on which the next training goes on: the newest that waits to go live, or the active."""
        return lineage.head(await self.rows(), await self.active())

    async def wanted(self) -> int:
        """The version that should answer now: the pointer, or the base while `pause all` holds."""
        off = await self._store.read(lambda db: settings.switch(db, "off"))
        return BASE if off else await self.active()

    async def wanted_canary(self) -> int:
        """The version that a share of the conversations should meet; 0: none, or `pause all` holds."""

        async def query(db: aiosqlite.Connection) -> int:
            found = await canaries.running(db, self.scope, self.model)
            if found is None or await settings.switch(db, "off"):
                return BASE
            moved = await adapters.pointer(db, self.scope, self.model) != found.against
            return BASE if moved or await adapters.tainted(db, found.version) else found.version

        return await self._store.read(query)

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

    async def _parent(self, version: int) -> int:
        try:
            return (await self.row(version)).parent
        except AdapterError:
            return BASE

    async def sweep(self, staging: Path, *, keep: str = "") -> None:
        """At start: remove what a killed trainer or a killed publish left behind, but what to `keep`."""
        known = {row.directory for row in await self._store.read(adapters.everywhere)}
        kept = {*known, formats.FOLDER}
        leftovers = [entry for entry in self.root.iterdir() if entry.name not in kept]
        if staging.exists():
            leftovers.extend(entry for entry in staging.iterdir() if entry.name != keep)
        for entry in leftovers:
            try:
                await asyncio.to_thread(_remove, entry)
            except OSError as error:
                logger.warning("%s was left behind and cannot be removed: %s", entry, error)
        await asyncio.to_thread(formats.sweep, self.root, known)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        trees.remove(entry)
    else:
        entry.unlink()
