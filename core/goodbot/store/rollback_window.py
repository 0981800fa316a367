# SPDX-License-Identifier: Apache-2.0
"""Ratings that count for nothing: an owner does not trust the time they came in, or left them out."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.store import codec, people
from goodbot.store.query import fetch, first

OF_IT = "(q.turn IS NULL OR q.turn = {0})"
"""SQL: a quarantine `q` holds for an answer."""
WITHIN = (
    f"EXISTS (SELECT 1 FROM quarantines q WHERE {OF_IT.format('e.turn')}"  # noqa: S608
    " AND (q.rater IS NULL OR q.rater = e.rater)"
    " AND (e.received_at >= q.since OR e.seq >= q.first_event_seq) AND e.seq <= q.last_event_seq)"
)
"""SQL: of the ledger `e`, what came in a quarantine."""
COVERED = f"e.kind IN ('rate', 'outcome') AND {WITHIN}"
"""SQL: of the ledger `e`, a rating or an outcome that some quarantine covers."""

_RETRACTED = "EXISTS (SELECT 1 FROM events r WHERE r.kind = 'retract' AND r.turn = e.turn AND "
_LATER = "r.retracts = '' AND (r.time_ms, r.tiebreak) > (e.time_ms, e.tiebreak)"
KEPT = (
    f"NOT {_RETRACTED}(r.rater = e.rater"
    f" OR {people.IDENTITY_OF.format('r.rater')} = {people.IDENTITY_OF.format('e.rater')})"
    " AND ((r.connector, r.account, r.retracts) = (e.connector, e.account, e.event_id)"
    f" OR (r.source = '' AND {_LATER})))"
)
"""SQL: of the ledger `e`, what its author did not take back."""
RETURNS = (
    f"{COVERED} AND {KEPT} AND NOT {_RETRACTED}r.rater = e.rater"
    f" AND (r.connector, r.account, r.source) = (e.connector, e.account, e.source) AND {_LATER})"
)
"""SQL: of the ledger `e`, what counts again once no quarantine covers it: no sign of it was taken away."""
STANDS = f"{KEPT} AND NOT {WITHIN}"
"""SQL: what its author did not take back, without what is in a quarantine."""
LEFT_OUT = (
    f"((e.kind = 'rate' AND {RETURNS} AND NOT EXISTS (SELECT 1 FROM labels l WHERE l.turn = e.turn"  # noqa: S608
    f" AND l.rater = {people.IDENTITY_OF.format('e.rater')} AND l.event_seq > e.seq))"
    f" OR (e.kind IN ('comment', 'better') AND {KEPT} AND {WITHIN}))"
)
"""SQL: of the ledger `e`, a rating or words that would count now, if no quarantine covered them."""


async def add(db: aiosqlite.Connection, since: float, by: str, now: float) -> int:
    """Leave out every rating that was received since then, up to now; returns how many it newly is.

    What came after one of them came since then, too, though the clock was set back in between. Not
    after one whose time has not come yet: there the clock was ahead, and nobody knows by how much.
    """
    before = await count(db)
    await db.execute(
        "INSERT INTO quarantines (since, first_event_seq, last_event_seq, made_by, made_at)"
        " SELECT :since, min(seq) FILTER (WHERE received_at BETWEEN :since AND :now),"
        " coalesce(max(seq), 0), :by, :now FROM events",
        {"since": since, "by": by, "now": now},
    )
    return await count(db) - before


async def leave_out(db: aiosqlite.Connection, turns: Sequence[str], by: str, now: float) -> None:
    """Leave out whatever was said of these answers so far; what is said of them from now on counts."""
    await take_in(db, turns)
    await db.executemany(
        "INSERT INTO quarantines (since, last_event_seq, made_by, made_at, turn)"
        " SELECT 0, coalesce(max(seq), 0), ?, ?, ? FROM events",
        [(by, now, turn) for turn in turns],
    )


async def leave_out_person(db: aiosqlite.Connection, accounts: Sequence[str], by: str, now: float) -> None:
    """Leave out whatever these accounts have said so far; what they say from now on counts."""
    await take_in_person(db, accounts)
    await db.executemany(
        "INSERT INTO quarantines (since, last_event_seq, made_by, made_at, rater)"
        " SELECT 0, coalesce(max(seq), 0), ?, ?, ? FROM events",
        [(by, now, account) for account in accounts],
    )


async def take_in_person(db: aiosqlite.Connection, accounts: Sequence[str]) -> None:
    """Let what these accounts have said count again, unless it is left out for another reason."""
    await db.executemany("DELETE FROM quarantines WHERE rater = ?", [(one,) for one in accounts])


async def said(db: aiosqlite.Connection, accounts: Sequence[str]) -> list[tuple[str, str]]:
    """`(turn, rater)` of all answers of which one of these accounts has said anything."""
    rows = await fetch(
        db,
        "SELECT DISTINCT turn, rater FROM events WHERE turn IS NOT NULL"
        " AND rater IN (SELECT value FROM json_each(?))",
        (codec.dump_json(list(accounts)),),
    )
    return [(row[0], row[1]) for row in rows]


async def take_in(db: aiosqlite.Connection, turns: Sequence[str]) -> None:
    """Let what was said of these answers count again, unless it is left out for another reason."""
    await db.executemany("DELETE FROM quarantines WHERE turn = ?", [(turn,) for turn in turns])


async def in_time(db: aiosqlite.Connection, turns: Sequence[str]) -> bool:
    """Whether something that was said of these answers came in a time that is left out."""
    rows = await fetch(
        db,
        "SELECT 1 FROM events e WHERE e.turn IN (SELECT value FROM json_each(?))"  # noqa: S608
        f" AND {LEFT_OUT} AND e.turn NOT IN (SELECT turn FROM quarantines WHERE turn IS NOT NULL) LIMIT 1",
        (codec.dump_json(list(turns)),),
    )
    return bool(rows)


async def heard(db: aiosqlite.Connection, turns: Sequence[str]) -> list[tuple[str, str]]:
    """`(turn, rater)` of all who have said anything of these answers."""
    rows = await fetch(
        db,
        "SELECT DISTINCT turn, rater FROM events WHERE turn IN (SELECT value FROM json_each(?))",
        (codec.dump_json(list(turns)),),
    )
    return [(row[0], row[1]) for row in rows]


async def lift(db: aiosqlite.Connection) -> int:
    """End all quarantines of a time; returns how many ratings count again. The caller folds them.

    What was left out answer by answer, or of single people, stays so.
    """
    before = await count(db)
    await db.execute("DELETE FROM quarantines WHERE turn IS NULL AND rater IS NULL")
    return before - await count(db)


async def count(db: aiosqlite.Connection) -> int:
    """How many ratings are left out."""
    rows = await fetch(db, f"SELECT count(*) FROM events e WHERE {COVERED}")  # noqa: S608
    (number,) = first(rows) or (0,)
    return number


async def covered(db: aiosqlite.Connection) -> list[tuple[str, str]]:
    """`(turn, rater)` of all ratings that are left out."""
    rows = await fetch(
        db,
        f"SELECT DISTINCT turn, rater FROM events e WHERE turn IS NOT NULL AND {COVERED}",  # noqa: S608
    )
    return [(row[0], row[1]) for row in rows]
