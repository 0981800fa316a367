# SPDX-License-Identifier: Apache-2.0
"""New versions that a share of the conversations meets first, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.api.sentences import in_words
from goodbot.store import adapters, codec
from goodbot.store.query import Row, fetch, first

_COLUMNS = "version, against, state, reason, began_at, ended_at"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One version that is or was a canary. Times are seconds since the epoch."""

    version: int
    against: int
    """The version that the other conversations meet."""
    state: str
    """`running`; then `passed`, `lost`, `failed` (the server does not serve it) or `superseded`."""
    reason: str
    """Why it was lost or has failed (`codec.load_reasons`)."""
    began_at: float
    ended_at: float | None


async def begin(
    db: aiosqlite.Connection, scope: str, model: str, version: int, against: int, now: float
) -> None:
    """Try a version, in place of one that is being tried; it waits to go live."""
    await end(db, scope, model, version, now)
    await db.execute(
        "INSERT INTO canaries (version, scope, model, against, state, reason, began_at)"
        " VALUES (?, ?, ?, ?, 'running', '', ?)",
        (version, scope, model, against, now),
    )
    await adapters.hold(db, version, adapters.CANARY)


async def running(db: aiosqlite.Connection, scope: str, model: str) -> Trial | None:
    """The one that is being tried."""
    rows = await fetch(
        db,
        f"SELECT {_COLUMNS} FROM canaries WHERE (scope, model, state) = (?, ?, 'running')",  # noqa: S608
        (scope, model),
    )
    row = first(rows)
    return _trial(row) if row else None


async def last(db: aiosqlite.Connection, scope: str, model: str) -> Trial | None:
    """The newest one, whatever became of it."""
    rows = await fetch(
        db,
        f"SELECT {_COLUMNS} FROM canaries WHERE (scope, model) = (?, ?)"  # noqa: S608
        " ORDER BY version DESC LIMIT 1",
        (scope, model),
    )
    row = first(rows)
    return _trial(row) if row else None


async def end(db: aiosqlite.Connection, scope: str, model: str, version: int, now: float) -> None:
    """The pointer moves to `version`: the canary has passed if it is that one, else it is superseded."""
    trial = await running(db, scope, model)
    if trial is not None:
        await close(db, trial.version, "passed" if trial.version == version else "superseded", "", now)


async def fail(db: aiosqlite.Connection, version: int, reason: str, now: float) -> None:
    """The server could not serve it: it waits on, and training goes on from it."""
    if await close(db, version, "failed", codec.dump_reasons(in_words(reason)), now):
        await adapters.hold(db, version, adapters.UNSERVED)


async def close(db: aiosqlite.Connection, version: int, state: str, reason: str, now: float) -> bool:
    """It is tried no more, and waits no more; False when that was so."""
    rows = await db.execute(
        "UPDATE canaries SET state = ?, reason = ?, ended_at = ? WHERE version = ? AND state = 'running'",
        (state, reason, now, version),
    )
    if rows.rowcount:
        await adapters.hold(db, version, "")
    return rows.rowcount == 1


def _trial(row: Row) -> Trial:
    return Trial(
        version=row[0], against=row[1], state=row[2], reason=row[3], began_at=row[4], ended_at=row[5]
    )
