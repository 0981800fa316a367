# SPDX-License-Identifier: Apache-2.0
"""Queues: answers that an owner has chosen for others to rate, and how far these are with them.

A queue gives nobody a sight of an answer: what an inbox does not show somebody (`review_queue.SEEN`) is
in none of theirs, and not counted there. What is rated is a rating like any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.queues import QueueShare
from goodbot.store import codec, predictions
from goodbot.store.prompts import STANDING
from goodbot.store.query import fetch, first, value
from goodbot.store.review_queue import OPINION, QUEUED, SEEN, Viewer

MOST_OPEN = 100
MOST_CLOSED = 50
"""So many of those that are closed are kept, the newest."""
_MOST_RATERS = 100
NAMED = "SELECT made_by FROM queues UNION SELECT who FROM queue_shares WHERE kind = 'person'"
"""SQL: whom they name, `connector:id`."""
_RETRIES = "LEFT JOIN retries r ON r.turn = t.id"
_PROGRESS = (
    f"SELECT count(l.value), count(*) FROM {QUEUED} LEFT {OPINION} {_RETRIES}"  # noqa: S608
    f" WHERE {SEEN} AND {STANDING}"
)
_RATERS = (
    f"SELECT l.rater, count(*) FROM {QUEUED} JOIN labels l ON l.turn = t.id {_RETRIES}"  # noqa: S608
    f" WHERE {SEEN} AND {STANDING} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_MOST_RATERS}"
)
_CHOSEN = (
    f"SELECT t.id, t.channel_kind FROM json_each(:turns) k CROSS JOIN turns t ON t.id = k.value {_RETRIES}"  # noqa: S608
    f" WHERE {SEEN} AND {STANDING} ORDER BY k.key"
)
_NEWEST = (
    f"SELECT t.id FROM turns t INDEXED BY turns_unrated {_RETRIES}"  # noqa: S608
    f" WHERE t.rated = 0 AND t.channel_kind = 'shared' AND {SEEN} AND {STANDING}"
    " ORDER BY t.created_at DESC LIMIT :limit"
)


_UNSURE = (
    f"SELECT t.id FROM {predictions.PREDICTED} {_RETRIES} WHERE {predictions.UNRATED}"  # noqa: S608
    f" AND t.channel_kind = 'shared' AND {SEEN} AND {STANDING}"
    f" ORDER BY {predictions.SURENESS}, t.seq DESC LIMIT :limit"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """One queue. `made_by` is `connector:id`; `closed_at` None while it is open."""

    id: int
    name: str
    made_by: str
    made_at: float
    closed_at: float | None
    shared: Sequence[QueueShare]


async def listed(db: aiosqlite.Connection, *, closed: bool = False) -> list[Queue]:
    """Those that are open, the newest first; the newest closed ones behind them, if they are wanted."""
    rows = await fetch(
        db,
        "SELECT id, name, made_by, made_at, closed_at FROM queues WHERE closed_at IS NULL ORDER BY id DESC",
    )
    if closed:
        rows += await fetch(
            db,
            "SELECT id, name, made_by, made_at, closed_at FROM queues WHERE closed_at IS NOT NULL"
            " ORDER BY closed_at DESC, id DESC LIMIT ?",
            (MOST_CLOSED,),
        )
    shared = defaultdict[int, list[QueueShare]](list)
    query = (
        "SELECT s.queue, s.kind, s.who FROM json_each(?) k JOIN queue_shares s ON s.queue ="
        " CAST(k.value AS INTEGER)"
        " ORDER BY 2, 3"
    )
    for queue, kind, who in await fetch(db, query, (codec.dump_json([row[0] for row in rows]),)):
        shared[queue].append(QueueShare(kind=kind, who=who))
    return [
        Queue(id=id_, name=name, made_by=by, made_at=at, closed_at=closed_at, shared=shared[id_])
        for id_, name, by, at, closed_at in rows
    ]


async def progress(db: aiosqlite.Connection, viewer: Viewer, queue: int) -> tuple[int, int]:
    """How many answers of a queue somebody has rated, of those that they may see."""
    row = first(await fetch(db, _PROGRESS, {**viewer.values(), "queue": queue}))
    return (row[0], row[1]) if row else (0, 0)


async def raters(db: aiosqlite.Connection, viewer: Viewer, queue: int) -> list[tuple[str, int]]:
    """Who has rated how many of its answers, of those that whoever asks may see; most first."""
    rows = await fetch(db, _RATERS, {**viewer.values(), "queue": queue})
    return [(who, count) for who, count in rows]


async def chosen(db: aiosqlite.Connection, viewer: Viewer, turns: Sequence[str]) -> list[tuple[str, str]]:
    """Which of these answers somebody may see, once each, and the kind of place where each was asked."""
    values = {**viewer.values(), "turns": codec.dump_json(list(dict.fromkeys(turns)))}
    return [(turn, kind) for turn, kind in await fetch(db, _CHOSEN, values)]


async def newest(db: aiosqlite.Connection, viewer: Viewer, limit: int) -> list[str]:
    """The newest answers of shared channels that nobody has rated."""
    return [turn for (turn,) in await fetch(db, _NEWEST, {**viewer.values(), "limit": limit})]


async def unsure(db: aiosqlite.Connection, viewer: Viewer, limit: int, predicting: str) -> list[str]:
    """Those of shared channels that nobody has rated and this base model is least sure of."""
    values = {**viewer.values(), "limit": limit, "predicting": predicting}
    return [turn for (turn,) in await fetch(db, _UNSURE, values)]


async def open_ones(db: aiosqlite.Connection) -> int:
    """How many are open."""
    return await value(db, "SELECT count(*) FROM queues WHERE closed_at IS NULL", default=0)


async def add(
    db: aiosqlite.Connection,
    *,
    name: str,
    by: str,
    now: float,
    turns: Sequence[str],
    shared: Sequence[QueueShare],
) -> int:
    """A new queue; its number."""
    made = "INSERT INTO queues (name, made_by, made_at) VALUES (?, ?, ?) RETURNING id"
    id_: int = await value(db, made, (name, by, now))
    await db.executemany("INSERT INTO queue_answers VALUES (?, ?)", [(id_, turn) for turn in turns])
    await db.executemany(
        "INSERT OR IGNORE INTO queue_shares VALUES (?, ?, ?)", [(id_, one.kind, one.who) for one in shared]
    )
    return id_


async def close(db: aiosqlite.Connection, id_: int, at: float | None) -> bool:
    """Close a queue, or open it again without `at`; False where there is none that is otherwise.

    Those that were closed longest ago go: no page shows them.
    """
    done = await db.execute(
        "UPDATE queues SET closed_at = ? WHERE id = ? AND (closed_at IS NULL) <> (? IS NULL)", (at, id_, at)
    )
    await db.execute(
        "DELETE FROM queues WHERE closed_at IS NOT NULL AND id NOT IN (SELECT id FROM queues"
        " WHERE closed_at IS NOT NULL ORDER BY closed_at DESC, id DESC LIMIT ?)",
        (MOST_CLOSED,),
    )
    return done.rowcount > 0


async def forget(db: aiosqlite.Connection, who: str) -> None:
    """What somebody has made goes, with the name that they gave it; and nothing is shared with them."""
    await db.execute("DELETE FROM queues WHERE made_by = ?", (who,))
    await db.execute("DELETE FROM queue_shares WHERE kind = 'person' AND who = ?", (who,))
