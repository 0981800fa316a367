# SPDX-License-Identifier: Apache-2.0
"""When the shared version moves on, what scopes have learnt is put on it: the sum is written anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import aiosqlite

from goodbot.api.adapters.manifest import WEIGHTS, AdapterManifest, publish
from goodbot.api.server import BASE
from goodbot.base import trees
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.spawn import child_environment
from goodbot.config import clear
from goodbot.learning.adapters.formats import Formats
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.store import adapters, scopes
from goodbot.store.adapters import SHARED_PART, AdapterRow

logger = logging.getLogger(__name__)


class _OvertakenError(Exception):
    """Rolls the transaction back that would have recorded a sum: what it was made of has changed."""


class Rebasing:
    """Writes one version at a time, while nothing trains; until it is there the one before answers."""

    def __init__(self, core: Core, registry: Callable[[str], AdapterRegistry]) -> None:
        self._core, self._registry = core, registry
        self._store, self._clock, self._home = core.store, core.clock, core.config.home
        self._formats = Formats(clear.of(self._home / "adapters"), core.model.path, child_environment())
        self._given_up: set[tuple[int, int]] = set()
        """Versions, and the shared ones that they could not be put on."""

    async def look(self, trains: Callable[[], bool]) -> None:
        """Put the first that is behind on the shared version of now, unless something `trains`.

        Raises StoreError.
        """
        model, kind = self._core.model.name, self._core.config.training.scopes
        late = await self._store.read(lambda db: scopes.behind(db, model, kind))
        todo = [(key, version, now) for key, version, now in late if (version, now) not in self._given_up]
        if not todo:
            return
        key, version, now = todo[0]
        try:
            await self._put(self._registry(key), version, now, trains)
        except _OvertakenError:
            logger.info("v%d is not put on v%d: something has changed meanwhile", version, now)
        except (AdapterError, ServerError, OSError) as error:
            self._given_up.add((version, now))
            logger.warning("v%d keeps its shared part: %s", version, error, extra={"version": version})

    async def _put(
        self, registry: AdapterRegistry, version: int, now: int, trains: Callable[[], bool]
    ) -> None:
        row = await registry.row(version)
        before = int(row.metrics[SHARED_PART])
        own, rests_on, onto = [
            await registry.path(one) if one != BASE else None for one in (version, before, now)
        ]
        if own is None:
            return
        folder = clear.of(self._home / "staging") / f"sum-{version}"
        await asyncio.to_thread(trees.remove, folder, ignore_errors=True)
        await asyncio.to_thread(folder.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        try:
            await self._formats.rebase(own, rests_on, onto, folder)
            made = await self._recorded(registry, row, now, folder, trains)
        finally:
            await asyncio.to_thread(trees.remove, folder, ignore_errors=True)
        if not await registry.activate(made, expected=version):
            logger.info("v%d is not put on v%d: another one answers there meanwhile", version, now)

    async def _recorded(
        self, registry: AdapterRegistry, row: AdapterRow, now: int, folder: Path, trains: Callable[[], bool]
    ) -> int:
        """The sum as a version that continues the one before; its ratings are that one's.

        Raises _OvertakenError where, while it was written, the one before has stopped answering, either part
        was withdrawn, or the number was given away: a training may have taken it that has begun meanwhile.
        """
        made = await self._store.read(adapters.next_version)
        metrics = {**row.metrics, SHARED_PART: now}
        manifest = AdapterManifest(
            version=made, parent=row.version, run=None, model=registry.model, files={}, metrics=metrics
        ).on(await asyncio.to_thread(registry.base))
        directory, manifest = await asyncio.to_thread(publish, folder, registry.root, manifest)
        new = AdapterRow(
            version=made,
            parent=row.version,
            run=None,
            directory=directory.name,
            sha256=manifest.files[WEIGHTS],
            model=registry.model,
            tainted="",
            baseline=row.baseline,
            metrics=metrics,
            created_at=self._clock.now(),
        )

        async def operation(db: aiosqlite.Connection) -> None:
            moved = await adapters.pointer(db, registry.scope, registry.model) != row.version
            withdrawn = await adapters.tainted(db, row.version) or await adapters.tainted(db, now)
            if moved or withdrawn or trains() or await adapters.next_version(db) != made:
                raise _OvertakenError
            await adapters.add(db, new, registry.scope)

        try:
            await self._store.write(operation)
        except Exception:
            await asyncio.to_thread(trees.remove, directory)
            raise
        return made
