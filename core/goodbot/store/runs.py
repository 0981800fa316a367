"""Training runs and what they claim.

A run's id is compared and set in every transaction that ends it: a trainer that comes back late
finds its run no longer `running` and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiosqlite

from goodbot.store import codec, ledger, turns
from goodbot.store.query import fetch, first
from goodbot.turns import Turn

# Private words train what others talk to only with their speaker's consent; where nobody else
# talks there is nobody to leak to. `:owners` is a JSON list of people.
_PERSON = "t.connector || ':' || t.talker"
_CONSENT = (
    f"(t.channel_kind = 'shared' OR {_PERSON} IN (SELECT person FROM shares)"  # noqa: S608
    f" OR ({_PERSON} IN (SELECT value FROM json_each(:owners)) AND NOT EXISTS"
    " (SELECT 1 FROM talkers WHERE scope = :scope"
    " AND person NOT IN (SELECT value FROM json_each(:owners)))))"
)
# Answers of another base model are no on-policy rollouts of this one.
_RATED = "t.scope = :scope AND t.model = :model AND t.trainable AND t.rated = 1 AND t.spent IS NULL"
_AVAILABLE = f"{_RATED} AND {_CONSENT}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A turn that a run may claim: its labels, and whether it has been held out before."""

    turn: Turn
    labels: Mapping[str, float]
    held_out_before: bool
    seq: int
    """The newest event behind its labels; candidates are ordered by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One claimed turn with its reward in [-1, +1]."""

    turn: str
    split: str
    reward: float
    labels: Mapping[str, float]
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One training run. Times are seconds since the epoch."""

    id: int
    state: str
    parent: int
    why: str
    reason: str
    backend: str
    started_at: float
    finished_at: float | None
    metrics: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where the next training stands."""

    available: int
    """Rated turns that no run has used."""
    waiting_for_consent: int
    """Rated turns of private chats whose speaker has not shared them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Where ratings may be claimed from: a scope, a base model, and who the owners are."""

    scope: str
    model: str
    owners: tuple[str, ...]

    def values(self) -> dict[str, str]:
        """The parameters of the queries here."""
        return {"scope": self.scope, "model": self.model, "owners": json.dumps(self.owners)}


async def standing(db: aiosqlite.Connection, pool: Pool) -> Standing:
    """Count what a run could claim now."""
    rows = await fetch(
        db,
        f"SELECT coalesce(sum({_CONSENT}), 0), count(*) FROM turns t WHERE {_RATED}",  # noqa: S608
        pool.values(),
    )
    available, rated = first(rows) or (0, 0)
    return Standing(available=available, waiting_for_consent=rated - available)


async def available(db: aiosqlite.Connection, pool: Pool, limit: int) -> int:
    """How many turns a run could claim now, counted up to `limit`: what a receipt tells."""
    rows = await fetch(
        db,
        f"SELECT count(*) FROM (SELECT 1 FROM turns t WHERE {_AVAILABLE} LIMIT :limit)",  # noqa: S608
        {**pool.values(), "limit": limit},
    )
    (count,) = first(rows) or (0,)
    return count


async def candidates(db: aiosqlite.Connection, pool: Pool) -> list[Candidate]:
    """All that a run may claim now, in the order of their rating events."""
    rows = await fetch(
        db,
        "SELECT t.id, json_group_object(l.rater, l.value), max(l.event_seq),"  # noqa: S608
        " EXISTS (SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run WHERE i.turn = t.id"
        " AND i.split = 'held_out' AND r.state IN ('activated', 'refused'))"
        f" FROM turns t JOIN labels l ON l.turn = t.id WHERE {_AVAILABLE}"
        " GROUP BY t.id ORDER BY max(l.event_seq)",
        pool.values(),
    )
    found = [tuple(row) for row in rows]
    result: list[Candidate] = []
    for turn_id, labels, seq, held in found:
        turn = await turns.get(db, turn_id)
        assert turn is not None  # noqa: S101  same transaction
        result.append(
            Candidate(turn=turn, labels=json.loads(labels), held_out_before=bool(held), seq=seq)
        )
    return result


async def start(
    db: aiosqlite.Connection,
    *,
    scope: str,
    parent: int,
    why: str,
    backend: str,
    settings: Mapping[str, Any],
    items: Sequence[Item],
    now: float,
) -> int:
    """Claim items for a new run; returns its id. At most one run of a scope is `running`."""
    rows = await fetch(
        db,
        "INSERT INTO runs (scope, state, parent, why, backend, settings, last_event_seq, started_at)"
        " VALUES (?, 'running', ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) FROM events), ?) RETURNING id",
        (scope, parent, why, backend, codec.dump_json(settings), now),
    )
    (run,) = first(rows) or (0,)
    await db.executemany(
        "INSERT INTO run_items (run, turn, split, reward, labels, weight) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (run, item.turn, item.split, item.reward, codec.dump_json(item.labels), item.weight)
            for item in items
        ],
    )
    return run


async def changed_items(db: aiosqlite.Connection, run: int) -> list[str]:
    """The turns of a run of which a label that it claimed is gone or different.

    A label that somebody has added since takes nothing back.
    """
    rows = await fetch(db, "SELECT turn, labels FROM run_items WHERE run = ?", (run,))
    claimed = [(row[0], json.loads(row[1])) for row in rows]
    return [
        turn for turn, before in claimed if ledger.took_back(before, await ledger.labels(db, turn))
    ]


async def objection(db: aiosqlite.Connection, run: int) -> str:
    """Why what a run has trained must not be used; empty when nothing speaks against it."""
    rows = await fetch(
        db,
        "SELECT r.state, coalesce(a.tainted, '') FROM runs r"
        " LEFT JOIN adapters a ON a.version = r.parent WHERE r.id = ?",
        (run,),
    )
    state, tainted = first(rows) or ("", "")
    if state != "running":
        return "the run was ended before it was done"
    if tainted:
        return f"the adapter that it continued is not to be used: {tainted}"
    if await changed_items(db, run):
        return "a rating that it trained on was taken back meanwhile; the rest will train again"
    return ""


async def finish(
    db: aiosqlite.Connection,
    run: int,
    state: str,
    reason: str,
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
        (state, reason, codec.dump_json(metrics), now, run),
    )
    ended = rows.rowcount == 1
    if ended and state != "activated":
        await _disown(db, run, f"its run was {state}")
    return ended


async def last_runs(db: aiosqlite.Connection, scope: str, limit: int = 1) -> list[Run]:
    """The newest runs, newest first."""
    rows = await fetch(
        db,
        "SELECT id, state, parent, why, reason, backend, started_at, finished_at, metrics FROM runs"
        " WHERE scope = ? ORDER BY id DESC LIMIT ?",
        (scope, limit),
    )
    return [
        Run(
            id=r[0], state=r[1], parent=r[2], why=r[3], reason=r[4], backend=r[5],
            started_at=r[6], finished_at=r[7], metrics=json.loads(r[8]),
        )
        for r in rows
    ]  # fmt: skip


async def labels_since(db: aiosqlite.Connection, scope: str, run: int) -> int:
    """Ratings that came after a run had claimed its own."""
    rows = await fetch(
        db,
        "SELECT count(*) FROM labels l JOIN turns t ON t.id = l.turn, runs r"
        " WHERE r.id = ? AND t.scope = ? AND l.event_seq > r.last_event_seq",
        (run, scope),
    )
    (count,) = first(rows) or (0,)
    return count


async def recover(db: aiosqlite.Connection, now: float) -> list[int]:
    """At start: runs that the last process left `running` have failed; their claims are free.

    Returns their ids.
    """
    rows = await fetch(
        db,
        "UPDATE runs SET state = 'failed', reason = 'goodbot stopped while it was training',"
        " finished_at = ? WHERE state = 'running' RETURNING id",
        (now,),
    )
    ended = [row[0] for row in rows]
    for run in ended:
        await _disown(db, run, "goodbot stopped before it went live")
    return ended


async def _disown(db: aiosqlite.Connection, run: int, reason: str) -> None:
    await db.execute(
        "UPDATE adapters SET tainted = ? WHERE run = ? AND tainted = ''", (reason, run)
    )
