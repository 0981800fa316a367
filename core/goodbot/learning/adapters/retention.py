# SPDX-License-Identifier: Apache-2.0
"""What goes by itself: files of versions that nobody will go back to; and what waits goes live.

Both are level-triggered: `Maintenance` looks at what is there, so a crash only delays them.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from goodbot.base.errors import AdapterError
from goodbot.learning.adapters import copies
from goodbot.learning.adapters.lineage import surplus
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.store import Store, adapters, progress, scopes

logger = logging.getLogger(__name__)


async def erase(store: Store, root: Path, row: adapters.AdapterRow, now: float) -> None:
    """Remove a version's files, in all formats, then say so in its row. Raises OSError, StoreError."""
    await asyncio.to_thread(copies.remove, root, row.directory)
    await store.write(lambda db: adapters.set_erased(db, row.version, now))


async def prune(store: Store, registry: AdapterRegistry, *, keep: int, now: float) -> list[int]:
    """Keep the files of `keep` versions of this base model; the rows stay. Returns what went."""
    gone: list[int] = []
    async with registry.still() as used:  # what is about to go live is looked at once it has
        mine = (registry.scope, registry.model)
        rows = [row for row in await registry.rows() if (row.scope, row.model) == mine]
        going = await store.read(lambda db: progress.underway(db, registry.scope))
        held = await store.read(scopes.held)
        for row in surplus(rows, await registry.active(), keep):
            if row.version in used | held or (going is not None and row.run == going.run):
                continue  # of a run without a verdict: it waits for the disk, and goes live then
            await erase(store, registry.root, row, now)
            logger.info("the files of v%d made room: %d versions are kept", row.version, keep)
            gone.append(row.version)
    return gone


async def go_live(store: Store, registry: AdapterRegistry) -> int | None:
    """Let the newest version answer that waited for a pin which is gone, or for the model to be back.

    Which, None if none does.

    Raises ServerError, and then it still waits.
    """
    active, rows = await registry.active(), await registry.rows()
    waiting = [row for row in rows if row.waits in (adapters.PINNED, adapters.AWAY)]
    if not waiting or await store.read(lambda db: adapters.stays(db, active)):
        return None
    version = next((row.version for row in reversed(waiting) if not row.tainted), None)
    live = False
    try:
        if version is not None:
            live = await registry.activate(version, expected=active)
    except AdapterError as error:
        logger.error("v%d does not go live: %s", version, error)
    for row in waiting:
        await store.write(lambda db, v=row.version: adapters.hold(db, v, ""))
    return version if live else None
