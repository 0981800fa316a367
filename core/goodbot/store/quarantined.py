# SPDX-License-Identifier: Apache-2.0
"""Answers that no training takes until somebody lets them in again.

Single ones whose numbers break a training (`nan`: the child has found them by bisection), and all of a
run that ran out of memory on them again and again (`oom`). They count again for another base model, and
when the settings change. What filters name (`filter`) is of no run, and is looked at anew for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import aiosqlite

from goodbot.store import teaching
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool

FILTER = "filter"


@dataclass(frozen=True, kw_only=True, slots=True)
class SetAside:
    """So many answers that are set aside for the same reason."""

    run: int
    """0: filters have."""
    kind: str
    reason: str
    answers: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AsideCount:
    """So many answers that a run has set aside one by one, and whose they are."""

    run: int
    sender: str
    """`connector:id` of who sent them, or of whom they answer."""
    captured: bool
    reason: str
    answers: int


async def add(db: aiosqlite.Connection, run: int, kind: str, turns: Mapping[str, str], now: float) -> None:
    """Set answers of a run aside: turn → why. Ids that are none of its own are ignored."""
    await db.executemany(
        "INSERT OR REPLACE INTO set_aside (turn, model, run, kind, reason, settings, since)"
        " SELECT i.turn, r.model, r.id, ?, ?, r.settings, ? FROM runs r"
        " JOIN run_items i ON i.run = r.id WHERE r.id = ? AND i.turn = ?",
        [(kind, reason, now, run, turn) for turn, reason in turns.items()],
    )


async def add_all(db: aiosqlite.Connection, run: int, kind: str, reason: str, now: float) -> None:
    """Set all answers of a run aside."""
    rows = await fetch(db, "SELECT turn FROM run_items WHERE run = ?", (run,))
    await add(db, run, kind, {row[0]: reason for row in rows}, now)


async def filtered(
    db: aiosqlite.Connection,
    model: str,
    looked: Collection[str],
    turns: Mapping[str, str],
    settings: str,
    now: float,
) -> None:
    """What filters have named of those that they have looked at: turn → why. Of the others all stays."""
    rows = await fetch(db, "SELECT turn, reason FROM set_aside WHERE model = ? AND kind = ?", (model, FILTER))
    known: dict[str, str] = {turn: why for turn, why in rows if turn in looked}
    await db.executemany(
        "DELETE FROM set_aside WHERE (turn, model) = (?, ?)",
        [(turn, model) for turn, reason in known.items() if turns.get(turn) != reason],
    )
    await db.executemany(
        "INSERT INTO set_aside (turn, model, run, kind, reason, settings, since)"
        " SELECT id, ?, 0, ?, ?, ?, ? FROM turns WHERE id = ? ON CONFLICT DO NOTHING",
        [
            (model, FILTER, reason, settings, now, turn)
            for turn, reason in turns.items()
            if known.get(turn) != reason
        ],
    )
    await teaching.count(db, *(known.keys() ^ turns.keys()))


async def let_go(db: aiosqlite.Connection, run: int) -> None:
    """A run ends: what it went without it has not learnt, and not used up."""
    theirs = "SELECT turn FROM set_aside WHERE run = ? AND kind = 'nan'"
    for column in ("spent", "own_spent"):
        query = f"UPDATE turns SET {column} = NULL WHERE {column} = ? AND id IN ({theirs})"  # noqa: S608
        await db.execute(query, (run, run))
    await db.execute(
        f"DELETE FROM run_items WHERE run = ? AND turn IN ({theirs})",  # noqa: S608
        (run, run),
    )


async def listed(db: aiosqlite.Connection, pool: Pool) -> list[SetAside]:
    """What is set aside for a base model, the newest run first; by filters what would train but for them."""
    rows = await fetch(
        db,
        pool.asked(
            "SELECT s.run, s.kind, s.reason, count(*) FROM set_aside s JOIN turns t ON t.id = s.turn"
            " WHERE (t.scope, s.model) = (?, ?) AND (s.kind <> ? OR t.rated > 0"
            " OR EXISTS (SELECT 1 FROM judgements j WHERE j.turn = s.turn AND j.value <> 0))"
            " GROUP BY s.run, s.kind, s.reason ORDER BY s.run DESC, s.reason"
        ),
        (pool.scope, pool.model, FILTER),
    )
    return [SetAside(run=r[0], kind=r[1], reason=r[2], answers=r[3]) for r in rows]


async def reason(db: aiosqlite.Connection, model: str, turn: str) -> str:
    """Why an answer is set aside; empty: it is not."""
    rows = await fetch(db, "SELECT reason FROM set_aside WHERE (turn, model) = (?, ?)", (turn, model))
    return rows[0][0] if rows else ""


async def sent(db: aiosqlite.Connection, scope: str, model: str, since: float) -> list[AsideCount]:
    """What was set aside one by one since then, by run and sender, the oldest run first."""
    rows = await fetch(
        db,
        "SELECT s.run, t.connector || ':' || t.talker, t.origin = 'captured', min(s.reason), count(*)"
        " FROM set_aside s JOIN turns t ON t.id = s.turn"
        " WHERE (t.scope, s.model) = (?, ?) AND s.kind = 'nan' AND s.since >= ?"
        " GROUP BY 1, 2, 3 ORDER BY 1, 2",
        (scope, model, since),
    )
    return [AsideCount(run=r[0], sender=r[1], captured=bool(r[2]), reason=r[3], answers=r[4]) for r in rows]


async def release(db: aiosqlite.Connection, model: str, *, but: str = "") -> int:
    """Let them train again; returns how many. Those set aside under the settings `but` stay.

    Without `but`, what filters have named stays: they would name it again.
    """
    # The run under way goes without them to its end, so it will not have used them up.
    for column in ("spent", "own_spent"):
        await db.execute(
            f"UPDATE turns SET {column} = NULL WHERE (id, {column}) IN (SELECT turn, run FROM set_aside"  # noqa: S608
            " WHERE model = ? AND settings <> ? AND kind = 'nan')",
            (model, but),
        )
    rows = await fetch(
        db,
        "DELETE FROM set_aside WHERE model = ? AND settings <> ? AND (? <> '' OR kind <> ?) RETURNING turn",
        (model, but, but, FILTER),
    )
    await teaching.count(db, *(turn for (turn,) in rows))
    return len(rows)
