# SPDX-License-Identifier: Apache-2.0
"""Training runs and what they have claimed.

A run's id is compared and set in every transaction that ends it: a trainer that comes back late
finds its run no longer `running` and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiosqlite

from goodbot.api.labels import Opinion
from goodbot.api.sentences import Reason, kept
from goodbot.api.sentences import words as in_english
from goodbot.store import codec, distilled, quarantined, shifts, words
from goodbot.store.query import fetch, first, value
from goodbot.store.training_pool import Pool
from goodbot.store.words import Word

_ENDED = {"refused": "kept_run_refused", "failed": "kept_run_failed", "superseded": "kept_run_superseded"}
"""Why an adapter is not to be used whose run ended so."""
CHANGED = "kept_changed"
"""Why one is not that a rating has taught which is gone, or different."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunItem:
    """One claimed turn with its reward in [-1, +1]."""

    turn: str
    split: str
    reward: float
    labels: Mapping[str, Opinion]
    weight: float = 1.0
    replayed: bool = False
    """An earlier run of this base model has learnt from it; this one does not use it up."""
    words: tuple[Word, ...] = ()
    """What was said beside the labels, where the run's objective takes it."""
    notes: tuple[int, ...] = ()
    """The notes that are taught on its question, the most important first."""
    note_weight: float = 0.0
    """What the answer that they teach weighs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One training run. Times are seconds since the epoch."""

    id: int
    state: str
    parent: int
    cause: tuple[Reason, ...]
    """Why it began."""
    ending: tuple[Reason, ...]
    """How it ended; nothing while it has not."""
    backend: str
    model: str
    started_at: float
    finished_at: float | None
    metrics: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def why(self) -> str:
        """`cause` in English."""
        return in_english(*self.cause)

    @property
    def reason(self) -> str:
        """`ending` in English."""
        return in_english(*self.ending)


async def start(
    db: aiosqlite.Connection,
    *,
    pool: Pool,
    parent: int,
    cause: Sequence[Reason],
    backend: str,
    settings: Mapping[str, Any],
    items: Sequence[RunItem],
    now: float,
    last_event: int | None = None,
) -> int:
    """Claim items for a new run; returns its id. At most one run of a scope is `running`.

    Answers of another base model than the pool's are replayed: they are not used up by it. `last_event`: the
    newest that they were chosen by; without it the newest of all.
    """
    rows = await fetch(
        db,
        "INSERT INTO runs (scope, model, state, parent, why, backend, settings, last_event_seq,"
        " started_at) VALUES (?, ?, 'running', ?, ?, ?, ?, coalesce(?, (SELECT max(seq) FROM events), 0), ?)"
        " RETURNING id",
        (
            *(pool.scope, pool.model, parent, codec.dump_reasons(cause), backend),
            *(codec.dump_json(settings), last_event, now),
        ),
    )
    (run,) = first(rows) or (0,)
    await _claim(db, run, items)
    return run


async def claim_again(db: aiosqlite.Connection, run: int, parent: int, items: Sequence[RunItem]) -> None:
    """A run that is still running starts over, on `parent`, with these items only; the others are free.

    What it has trained so far, and its adapter if one is recorded, is not to be used. Its checkpoints
    must be gone before: they have learnt from what it lets go.
    """
    for column in ("spent", "own_spent"):
        await db.execute(f"UPDATE turns SET {column} = NULL WHERE {column} = ?", (run,))  # noqa: S608
    await db.execute("DELETE FROM run_items WHERE run = ?", (run,))
    await distilled.let_go(db, run)
    await db.execute("UPDATE runs SET parent = ?, replay = 0 WHERE id = ?", (parent, run))
    await _disown(db, run, CHANGED)
    await _claim(db, run, items)


async def _claim(db: aiosqlite.Connection, run: int, items: Sequence[RunItem]) -> None:
    await db.executemany(
        "INSERT INTO run_items (run, turn, split, reward, labels, weight, replayed,"
        " words, position) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                run,
                item.turn,
                item.split,
                item.reward,
                codec.dump_json(item.labels),
                item.weight,
                item.replayed,
                words.dump(item.words),
                position,
            )
            for position, item in enumerate(items)
        ],
    )
    await db.execute(
        "UPDATE runs SET replay = 1 WHERE id = ? AND EXISTS (SELECT 1 FROM run_items i"
        " JOIN turns t ON t.id = i.turn WHERE i.run = runs.id AND t.model <> runs.model)",
        (run,),
    )


async def running(db: aiosqlite.Connection, run: int) -> bool:
    """Whether it has no verdict yet."""
    return bool(await fetch(db, "SELECT 1 FROM runs WHERE id = ? AND state = 'running'", (run,)))


async def ended_after(db: aiosqlite.Connection, run: int, moment: float) -> bool:
    """Whether it ended later than that."""
    query = "SELECT 1 FROM runs WHERE id = ? AND finished_at > ?"
    return bool(await fetch(db, query, (run, moment)))


async def finish(
    db: aiosqlite.Connection,
    run: int,
    state: str,
    ending: Sequence[Reason],
    metrics: Mapping[str, Any],
    now: float,
) -> bool:
    """End a run that is still running; False when it was ended before.

    An adapter that it has recorded is not to be used unless `state` is `activated`: its ratings
    are free for another run.
    """
    rows = await db.execute(
        "UPDATE runs SET state = ?, reason = ?, metrics = ?, finished_at = ?"
        " WHERE id = ? AND state = 'running'",
        (state, codec.dump_reasons(ending), codec.dump_json(metrics), now, run),
    )
    ended = rows.rowcount == 1
    if ended:
        await quarantined.let_go(db, run)
    if ended and state != "activated":
        await _disown(db, run, _ENDED.get(state, state))
    return ended


async def let_go(db: aiosqlite.Connection, running: Collection[int], why: str) -> None:
    """End these runs: their ratings are free, and `why` is a code."""
    ending = codec.dump_reasons(kept(why))
    query = "UPDATE runs SET state = 'released', reason = ? WHERE id = ?"
    await db.executemany(query, [(ending, run) for run in running])


async def unfinished(db: aiosqlite.Connection) -> set[int]:
    """Those of all scopes that have no verdict yet."""
    return {run for (run,) in await fetch(db, "SELECT id FROM runs WHERE state = 'running'")}


async def live(db: aiosqlite.Connection, run: int) -> tuple[Reason, ...] | None:
    """With which ending a run's adapter went live; None when it did not, or is taken back."""
    kept = await value(db, "SELECT reason FROM runs WHERE id = ? AND state = 'activated'", (run,))
    return None if kept is None else codec.load_reasons(kept)


async def learnt(db: aiosqlite.Connection, run: int) -> dict[str, list[int]]:
    """Turn → the ledger's events whose labels the run trained on; not what it held out, or left out."""
    rows = await fetch(
        db,
        "SELECT i.turn, l.event_seq FROM run_items i JOIN labels l ON l.turn = i.turn"
        " WHERE i.run = ? AND i.split = 'train' AND i.weight > 0 AND EXISTS"
        " (SELECT 1 FROM json_each(i.labels) c WHERE c.key = l.rater) ORDER BY i.position, l.event_seq",
        (run,),
    )
    found: dict[str, list[int]] = {}
    for turn, event in rows:
        found.setdefault(turn, []).append(event)
    return found


async def last_runs(db: aiosqlite.Connection, scope: str, limit: int = 1, *, model: str = "") -> list[Run]:
    """The newest runs, newest first; with `model` those on that base model."""
    rows = await fetch(
        db,
        "SELECT id, state, parent, why, reason, backend, model, started_at, finished_at, metrics"
        " FROM runs WHERE scope = ? AND ? IN ('', model) ORDER BY id DESC LIMIT ?",
        (scope, model, limit),
    )
    return [
        Run(
            id=r[0],
            state=r[1],
            parent=r[2],
            cause=codec.load_reasons(r[3]),
            ending=codec.load_reasons(r[4]),
            backend=r[5],
            model=r[6],
            started_at=r[7],
            finished_at=r[8],
            metrics=json.loads(r[9]),
        )
        for r in rows
    ]


async def labels_since(db: aiosqlite.Connection, pool: Pool, run: int, limit: int) -> int:
    """Ratings of the pool's model that teach something and came after a run had claimed its own.

    Counted up to `limit`.
    """
    rows = await fetch(
        db,
        pool.asked(
            "SELECT count(*) FROM (SELECT 1 FROM runs r CROSS JOIN events e ON e.seq > r.last_event_seq"
            " CROSS JOIN labels l ON l.turn = e.turn AND l.event_seq = e.seq JOIN turns t ON t.id = l.turn"
            " WHERE r.id = ? AND (t.scope, t.model) = (?, ?) AND t.rated = 1 LIMIT ?)"
        ),
        (run, pool.scope, pool.model, limit),
    )
    (count,) = first(rows) or (0,)
    return count


async def _disown(db: aiosqlite.Connection, run: int, reason: str) -> None:
    await shifts.drop(db, run)
    await db.execute(
        "UPDATE adapters SET tainted = ?, waits = '' WHERE run = ? AND tainted = ''", (reason, run)
    )
