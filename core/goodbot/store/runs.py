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
from goodbot.turns import Turn

# A turn is used up once a run that reached a verdict has trained on it.
_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run WHERE i.turn = t.id"
    " AND i.split = 'train' AND r.state IN ('running', 'activated', 'refused'))"
)
# Private words train what others talk to only with their speaker's consent; where nobody else
# talks there is nobody to leak to. `:owners` is a JSON list of people.
_PERSON = "t.connector || ':' || t.talker"
_CONSENT = (
    "(t.channel_kind = 'shared' OR " + _PERSON + " IN (SELECT person FROM shares)"
    " OR (" + _PERSON + " IN (SELECT value FROM json_each(:owners)) AND NOT EXISTS"
    " (SELECT 1 FROM turns o WHERE o.scope = t.scope"
    " AND o.connector || ':' || o.talker NOT IN (SELECT value FROM json_each(:owners)))))"
)
# Answers of another base model are no on-policy rollouts of this one.
_RATED = f"t.scope = :scope AND t.model = :model AND t.trainable AND {_UNUSED}"
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
    newest: int
    """The newest event behind the available labels."""


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
    values = pool.values()
    async with db.execute(
        f"SELECT count(DISTINCT t.id), coalesce(max(l.event_seq), 0) FROM turns t"  # noqa: S608
        f" JOIN labels l ON l.turn = t.id WHERE {_AVAILABLE}",
        values,
    ) as rows:
        available, newest = await rows.fetchone() or (0, 0)
    async with db.execute(
        f"SELECT count(DISTINCT t.id) FROM turns t JOIN labels l ON l.turn = t.id"  # noqa: S608
        f" WHERE {_RATED} AND NOT {_CONSENT}",
        values,
    ) as rows:
        (waiting,) = await rows.fetchone() or (0,)
    return Standing(available=available, waiting_for_consent=waiting, newest=newest)


async def candidates(db: aiosqlite.Connection, pool: Pool) -> list[Candidate]:
    """All that a run may claim now, in the order of their rating events."""
    async with db.execute(
        "SELECT t.id, json_group_object(l.rater, l.value), max(l.event_seq),"  # noqa: S608
        " EXISTS (SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run WHERE i.turn = t.id"
        " AND i.split = 'held_out' AND r.state IN ('activated', 'refused'))"
        f" FROM turns t JOIN labels l ON l.turn = t.id WHERE {_AVAILABLE}"
        " GROUP BY t.id ORDER BY max(l.event_seq)",
        pool.values(),
    ) as rows:
        found = [tuple(row) async for row in rows]
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
    async with db.execute(
        "INSERT INTO runs (scope, state, parent, why, backend, settings, last_event_seq, started_at)"
        " VALUES (?, 'running', ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) FROM events), ?) RETURNING id",
        (scope, parent, why, backend, codec.dump_json(settings), now),
    ) as rows:
        (run,) = await rows.fetchone() or (0,)
    await db.executemany(
        "INSERT INTO run_items VALUES (?, ?, ?, ?, ?)",
        [(run, item.turn, item.split, item.reward, codec.dump_json(item.labels)) for item in items],
    )
    return run


async def changed_items(db: aiosqlite.Connection, run: int) -> list[str]:
    """The turns of a run whose labels are no longer what it claimed."""
    async with db.execute("SELECT turn, labels FROM run_items WHERE run = ?", (run,)) as rows:
        claimed = [(row[0], json.loads(row[1])) async for row in rows]
    return [turn for turn, before in claimed if await ledger.labels(db, turn) != before]


async def state(db: aiosqlite.Connection, run: int) -> str:
    """The state of a run; empty when there is none of that number."""
    async with db.execute("SELECT state FROM runs WHERE id = ?", (run,)) as rows:
        row = await rows.fetchone()
    return row[0] if row else ""


async def finish(
    db: aiosqlite.Connection, run: int, state: str, reason: str, metrics: Mapping[str, Any], now: float
) -> bool:
    """End a run that is still running; False when it was ended before."""
    async with db.execute(
        "UPDATE runs SET state = ?, reason = ?, metrics = ?, finished_at = ?"
        " WHERE id = ? AND state = 'running'",
        (state, reason, codec.dump_json(metrics), now, run),
    ) as rows:
        return rows.rowcount == 1


async def last_runs(db: aiosqlite.Connection, scope: str, limit: int = 1) -> list[Run]:
    """The newest runs, newest first."""
    async with db.execute(
        "SELECT id, state, parent, why, reason, backend, started_at, finished_at, metrics FROM runs"
        " WHERE scope = ? ORDER BY id DESC LIMIT ?",
        (scope, limit),
    ) as rows:
        return [
            Run(
                id=r[0], state=r[1], parent=r[2], why=r[3], reason=r[4], backend=r[5],
                started_at=r[6], finished_at=r[7], metrics=json.loads(r[8]),
            )
            async for r in rows
        ]  # fmt: skip


async def labels_since(db: aiosqlite.Connection, scope: str, run: int) -> int:
    """Ratings that came after a run had claimed its own."""
    async with db.execute(
        "SELECT count(*) FROM labels l JOIN turns t ON t.id = l.turn, runs r"
        " WHERE r.id = ? AND t.scope = ? AND l.event_seq > r.last_event_seq",
        (run, scope),
    ) as rows:
        (count,) = await rows.fetchone() or (0,)
    return count


async def recover(db: aiosqlite.Connection, now: float) -> list[int]:
    """At start: runs that the last process left `running` have failed; their claims are free."""
    async with db.execute(
        "UPDATE runs SET state = 'failed', reason = 'goodbot stopped while it was training',"
        " finished_at = ? WHERE state = 'running' RETURNING id",
        (now,),
    ) as rows:
        return [row[0] async for row in rows]
