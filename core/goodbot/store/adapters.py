"""Adapter versions, the active pointer, and taint: what was trained on a rating that is gone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.store import access, codec, ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterRow:
    """One adapter version as the store knows it. `tainted` says why it must not be used."""

    version: int
    parent: int
    run: int | None
    directory: str
    sha256: str
    model: str
    tainted: str
    baseline: dict[str, float]
    metrics: dict[str, Any]
    created_at: float


async def next_version(db: aiosqlite.Connection) -> int:
    """A number that no adapter has had; the file names carry it before the row does."""
    async with db.execute(
        "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'adapters'), 0) + 1"
    ) as rows:
        (version,) = await rows.fetchone() or (1,)
    return version


async def add(db: aiosqlite.Connection, row: AdapterRow, scope: str) -> None:
    """Record an adapter whose files are in place and synced."""
    await db.execute(
        "INSERT INTO adapters (version, scope, parent, run, directory, sha256, model, baseline, metrics,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row.version, scope, row.parent, row.run, row.directory, row.sha256, row.model,
         codec.dump_json(row.baseline), codec.dump_json(row.metrics), row.created_at),
    )  # fmt: skip


async def pointer(db: aiosqlite.Connection, scope: str) -> int:
    """The active version; 0 is the base model."""
    async with db.execute("SELECT version FROM pointers WHERE scope = ?", (scope,)) as rows:
        row = await rows.fetchone()
    return row[0] if row else 0


async def move_pointer(
    db: aiosqlite.Connection, scope: str, expected: int, version: int, now: float
) -> bool:
    """Compare and set the active version; False when somebody else has moved it."""
    async with db.execute(
        "UPDATE pointers SET version = ?, updated_at = ? WHERE scope = ? AND version = ?",
        (version, now, scope, expected),
    ) as rows:
        return rows.rowcount == 1


async def all_of(db: aiosqlite.Connection, scope: str) -> list[AdapterRow]:
    """All versions, oldest first."""
    async with db.execute(
        "SELECT version, parent, run, directory, sha256, model, tainted, baseline, metrics, created_at"
        " FROM adapters WHERE scope = ? ORDER BY version",
        (scope,),
    ) as rows:
        return [
            AdapterRow(
                version=r[0], parent=r[1], run=r[2], directory=r[3], sha256=r[4], model=r[5],
                tainted=r[6], baseline=json.loads(r[7]), metrics=json.loads(r[8]), created_at=r[9],
            )
            async for r in rows
        ]  # fmt: skip


async def taint(db: aiosqlite.Connection, scope: str, turn: str, reason: str) -> list[int]:
    """A turn's labels have changed: mark every adapter that was trained on the old ones.

    Their runs are `released`, so that the other ratings can train again, and the switch
    `retrain` asks the scheduler for it. Returns the versions that are tainted by this.
    """
    async with db.execute(
        "SELECT r.id, i.labels FROM run_items i JOIN runs r ON r.id = i.run"
        " WHERE i.turn = ? AND i.split = 'train' AND r.state = 'activated'",
        (turn,),
    ) as rows:
        trained = [(row[0], json.loads(row[1])) async for row in rows]
    now = await ledger.labels(db, turn)
    stale = {run for run, before in trained if before != now}
    if not stale:
        return []
    tainted: list[int] = []
    for adapter in await all_of(db, scope):  # parents come before their children
        if adapter.tainted:
            continue
        if adapter.run in stale or adapter.parent in tainted:
            tainted.append(adapter.version)
            await db.execute(
                "UPDATE adapters SET tainted = ? WHERE version = ?", (reason, adapter.version)
            )
            await db.execute("UPDATE runs SET state = 'released' WHERE id = ?", (adapter.run,))
    if tainted and await pointer(db, scope) in tainted:
        await access.set_switch(db, "retrain", reason)
    return tainted


async def set_tainted(db: aiosqlite.Connection, version: int, reason: str) -> None:
    """Mark one version as not to be used."""
    await db.execute("UPDATE adapters SET tainted = ? WHERE version = ?", (reason, version))
