# SPDX-License-Identifier: Apache-2.0
"""Adapter versions, the active pointer, and taint: what was trained on a rating that is gone."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.store import codec, distilled, fixed, objections, settings, shifts
from goodbot.store.pools import SHARED
from goodbot.store.query import fetch, first, value

FORGOTTEN = "kept_forgotten"
"""`tainted` of an adapter whose files are to be erased."""
PINNED = "kept_pinned"
"""Why a version waits (`AdapterRow.waits`) that goes live once that one is unpinned."""
SHARED_PART = "shared"
"""In `metrics` of a scope's version: the shared one that is a part of it; 0: none is."""
AWAY = "kept_away"
"""Why a version waits that goes live once the model is back."""
UNSERVED = "kept_unserved"
"""Why a version waits that had no effect on the server."""
CANARY = "kept_tried"
"""Why a version waits that goes live once enough ratings speak for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterRow:
    """One adapter version as the store knows it. `tainted` says why it must not be used.

    `waits` says why it is not live yet although it may be; both are codes, for `sentences.clause_of`.
    `erased_at`: since when its files are gone.
    """

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
    pinned: bool = False
    waits: str = ""
    erased_at: float | None = None
    scope: str = SHARED


async def next_version(db: aiosqlite.Connection) -> int:
    """A number that no adapter has had; the file names carry it before the row does."""
    rows = await fetch(
        db, "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'adapters'), 0) + 1"
    )
    (version,) = first(rows) or (1,)
    return version


async def add(db: aiosqlite.Connection, row: AdapterRow, scope: str) -> None:
    """Record an adapter whose files are in place and synced."""
    await db.execute(
        "INSERT INTO adapters (version, scope, parent, run, directory, sha256, model, baseline, metrics,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.version,
            scope,
            row.parent,
            row.run,
            row.directory,
            row.sha256,
            row.model,
            codec.dump_json(row.baseline),
            codec.dump_json(row.metrics),
            row.created_at,
        ),
    )


async def pointer(db: aiosqlite.Connection, scope: str, model: str) -> int:
    """The active version of a base model; 0 is the base model itself."""
    return await value(
        db, "SELECT version FROM pointers WHERE (scope, model) = (?, ?)", (scope, model), default=0
    )


async def exists(db: aiosqlite.Connection, scopes: Collection[str], model: str, version: int) -> bool:
    """Whether a base model has ever had this version in one of these scopes."""
    query = "SELECT scope FROM adapters WHERE (version, model) = (?, ?)"
    return any(scope in scopes for (scope,) in await fetch(db, query, (version, model)))


async def tainted(db: aiosqlite.Connection, version: int) -> str:
    """Why a version must not be used; empty if it may be, or is the base model."""
    return await value(db, "SELECT tainted FROM adapters WHERE version = ?", (version,), default="")


async def withdrawn_twin(db: aiosqlite.Connection, scope: str, sha256: str) -> tuple[int, str] | None:
    """A version of the very same weights that must not be used, and why."""
    rows = await fetch(
        db,
        "SELECT version, tainted FROM adapters WHERE (scope, sha256) = (?, ?) AND tainted <> '' LIMIT 1",
        (scope, sha256),
    )
    return (rows[0][0], rows[0][1]) if rows else None


async def move_pointer(
    db: aiosqlite.Connection, scope: str, model: str, expected: int, version: int, now: float
) -> bool:
    """Compare and set the active version; False when somebody else has moved it."""
    await db.execute("INSERT OR IGNORE INTO pointers VALUES (?, ?, 0, ?)", (scope, model, now))
    rows = await db.execute(
        "UPDATE pointers SET version = ?, updated_at = ? WHERE (scope, model, version) = (?, ?, ?)",
        (version, now, scope, model, expected),
    )
    if rows.rowcount == 1:
        await settings.set_switch(db, lost_switch(scope, model), "")
    return rows.rowcount == 1


async def pin(db: aiosqlite.Connection, version: int, at: float | None) -> None:
    """Keep a version's files for good, and it active while it is; None lets go of it."""
    await db.execute("UPDATE adapters SET pinned_at = ? WHERE version = ?", (at, version))


async def stays(db: aiosqlite.Connection, version: int) -> bool:
    """Whether nothing is to take this version's place by itself: it is pinned, and may be used."""
    row = first(
        await fetch(
            db, "SELECT pinned_at IS NOT NULL AND tainted = '' FROM adapters WHERE version = ?", (version,)
        )
    )
    return bool(row and row[0])


async def fall_back(
    db: aiosqlite.Connection, scope: str, model: str, active: int, target: int, now: float, *, unserved: bool
) -> None:
    """The pointer from `active`, which cannot be used, to `target`.

    `unserved`: nothing is wrong with `active` itself, so training goes on from it.
    """
    moved = await move_pointer(db, scope, model, active, target, now)
    if unserved:
        await hold(db, active, UNSERVED)
    elif moved:
        await settings.set_switch(db, lost_switch(scope, model), str(active))


async def hold(db: aiosqlite.Connection, version: int, why: str) -> None:
    """A version may answer, but not yet, and why; empty: it waits no more, as what is tainted does."""
    await db.execute("UPDATE adapters SET waits = iif(tainted = '', ?, '') WHERE version = ?", (why, version))


async def set_erased(db: aiosqlite.Connection, version: int, now: float) -> None:
    """The files of a version are gone."""
    await db.execute("UPDATE adapters SET erased_at = ? WHERE version = ?", (now, version))


async def all_of(db: aiosqlite.Connection, *scopes: str) -> list[AdapterRow]:
    """All versions of these scopes, oldest first."""
    named = "WHERE scope IN (SELECT value FROM json_each(?))"
    return await _rows(db, named, codec.dump_json(list(scopes)))


async def everywhere(db: aiosqlite.Connection) -> list[AdapterRow]:
    """All versions of all scopes, oldest first."""
    return await _rows(db, "")


async def _rows(db: aiosqlite.Connection, which: str, *values: str) -> list[AdapterRow]:
    rows = await fetch(
        db,
        "SELECT version, parent, run, directory, sha256, model, tainted, baseline, metrics, created_at,"  # noqa: S608
        f" pinned_at IS NOT NULL, waits, erased_at, scope FROM adapters {which} ORDER BY version",
        values,
    )
    return [
        AdapterRow(
            version=r[0],
            parent=r[1],
            run=r[2],
            directory=r[3],
            sha256=r[4],
            model=r[5],
            tainted=r[6],
            baseline=json.loads(r[7]),
            metrics=json.loads(r[8]),
            created_at=r[9],
            pinned=bool(r[10]),
            waits=r[11],
            erased_at=r[12],
            scope=r[13],
        )
        for r in rows
    ]


async def taint(db: aiosqlite.Connection, scope: str, turn: str, reason: str) -> list[int]:
    """What was said of a turn has changed: mark every adapter trained on what is gone or different.

    Returns the versions that are tainted by this; see `mark`.
    """
    rows = await fetch(
        db,
        "SELECT r.id, i.labels, i.words FROM run_items i JOIN runs r ON r.id = i.run"
        " WHERE i.turn = ? AND i.split = 'train' AND i.weight > 0 AND r.state = 'activated'",
        (turn,),
    )
    stale = {run for run, labels, said in rows if await objections.lost(db, turn, labels, said)}
    stale |= await distilled.stale(db, turn)
    return await mark(db, scope, stale, reason)


async def mark(
    db: aiosqlite.Connection,
    scope: str,
    stale: Collection[int],
    reason: str,
    *,
    again: bool = False,
    everything: bool = False,
) -> list[int]:
    """Mark the adapters of these runs, their copies, and all that descend from them: which, newly.

    Whichever scopes they are of: one may rest on what the shared one has learnt. Their runs are
    `released`, so that the other ratings can train again, and a switch asks the scheduler for it
    (`retrain_switch`). With `again`, those that are tainted already get this reason as well; with
    `everything` all versions of `scope` get it.
    """
    if not (stale or everything):
        return []
    lineage: set[int] = set()
    weights: set[str] = set()  # what was exported and imported again is the same thing
    fresh: list[int] = []
    for adapter in await everywhere(db):  # parents come before their children
        if adapter.tainted and not again:
            continue
        parts = {adapter.parent, adapter.metrics.get(SHARED_PART)}
        marked = adapter.run in stale or parts & lineage or adapter.sha256 in weights
        if marked or (everything and adapter.scope == scope):
            lineage.add(adapter.version)
            weights.add(adapter.sha256)
            if not adapter.tainted:
                fresh.append(adapter.version)
            await db.execute(
                "UPDATE adapters SET tainted = ?, waits = '' WHERE version = ?", (reason, adapter.version)
            )
            await db.execute(
                "UPDATE runs SET state = 'released' WHERE id = ? AND state IN ('running', 'activated')",
                (adapter.run,),
            )
            await shifts.drop(db, adapter.run)
            await fixed.drop(db, adapter.version)
    for of, model, version in await fetch(db, "SELECT scope, model, version FROM pointers"):
        if version in fresh:
            await settings.set_switch(db, retrain_switch(of, model), reason)
    return fresh


def retrain_switch(scope: str, model: str) -> str:
    """The switch that asks for a replacement of this base model's active adapter."""
    return _switch("retrain", scope, model)


def lost_switch(scope: str, model: str) -> str:
    """The switch that names the version of this base model that answered until it could not be used any more.

    It is off once the pointer has moved again: by a training, or by a person.
    """
    return _switch("lost", scope, model)


def _switch(what: str, scope: str, model: str) -> str:
    return f"{what} {model}" if scope == SHARED else f"{what} {model} {scope}"


async def to_erase(db: aiosqlite.Connection) -> list[AdapterRow]:
    """Adapters of all scopes whose files are to be deleted and that no pointer names."""
    which = "WHERE tainted = ? AND erased_at IS NULL AND version NOT IN (SELECT version FROM pointers)"
    return await _rows(db, which, FORGOTTEN)
