# SPDX-License-Identifier: Apache-2.0
"""What a run may claim: rated, consented answers that it has not learnt from yet.

Those of its own base model once, and again where `replay_share` asks for it; those of other models
when they are replayed on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.api.labels import Opinion
from goodbot.api.turns import Turn
from goodbot.store import turns
from goodbot.store.consent import ALL_SHARE, CONSENT, OWNERS, PERSON, SHARING
from goodbot.store.pools import Pool as Pool
from goodbot.store.query import Row, fetch, first, value
from goodbot.store.teaching import OPINIONS

_ASIDE = "FROM set_aside s WHERE (s.turn, s.model) = (t.id, :model)"
ASIDE = f"EXISTS (SELECT 1 {_ASIDE} AND (s.kind <> 'filter' OR NOT :anew))"
_LABELLED = (
    f"t.scope = :scope AND t.trainable AND t.rated > 0 AND (:others OR t.answered_by = '') AND NOT {ASIDE}"
)
# Answers of another base model are no on-policy rollouts of this one.
_OWN = f"{_LABELLED} AND t.model = :model AND t.spent IS NULL"
_LEARNT = (
    "SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run"
    " WHERE i.turn = t.id AND (r.scope, r.model) = (:scope, :model) AND r.state IN ('running', 'activated')"
)
# They are replayed once, at the switch to this one (`goodbot.learning.model_switch`) …
_FOREIGN = f"{_LABELLED} AND t.model <> :model AND NOT EXISTS ({_LEARNT})"
# … and again when an undo has released the run that did it.
_OWED = (
    f"{_FOREIGN} AND t.id IN (SELECT i.turn FROM runs r JOIN run_items i ON i.run = r.id"  # noqa: S608
    " WHERE r.replay = 1 AND (r.scope, r.model) = (:scope, :model) AND r.state = 'released')"
)
UNUSED = (
    "SELECT CASE WHEN t.scope <> :scope OR NOT t.trainable THEN 'unused'"  # noqa: S608
    f" WHEN NOT :others AND t.answered_by <> '' THEN 'from_others' WHEN {ASIDE}"
    f" THEN (SELECT iif(s.kind = 'filter', 'filtered', 'set_aside') {_ASIDE})"
    f" WHEN t.model <> :model THEN iif({_OWED}, '', 'other_model')"
    " WHEN t.spent IS NOT NULL THEN 'used' ELSE '' END FROM turns t WHERE t.id = :turn"
)
"""Why no run would claim `:turn` whatever is said of it, as a code of `sentences`; empty: one may."""
# What an earlier run has learnt from may be repeated; one that was refused has taught nothing.
_TRAINED = (
    f"{_LABELLED} AND t.model = :model"  # noqa: S608
    " AND t.spent IN (SELECT id FROM runs WHERE (scope, state) = (:scope, 'activated'))"
)
_REPEATABLE = 5000
"""Of the answers that a run may repeat, so many of the newest."""
_WHO = "SELECT t.id, t.connector, t.talker, t.channel_kind FROM turns t"
AGAIN = f"{_WHO} WHERE {_TRAINED} AND t.id IN (SELECT value FROM json_each(:turns))"  # noqa: S608
"""SQL: of `:turns` those that earlier runs have learnt from."""
CLAIMABLE = (
    f"SELECT t.id, {OPINIONS}, max(l.event_seq),"  # noqa: S608
    " EXISTS (SELECT 1 FROM run_items i JOIN runs r ON r.id = i.run WHERE i.turn = t.id"
    " AND i.split = 'held_out' AND (r.scope, r.model) = (:scope, :model)"
    " AND r.state IN ('activated', 'refused'))"
    f" FROM ({{}}) t JOIN labels l ON l.turn = t.id WHERE {CONSENT}"
    " GROUP BY t.id ORDER BY max(l.event_seq)"
)
"""SQL: `(turn, labels as JSON, newest event, held out before)` of those chosen, with consent."""
# What the reward policy makes nothing of (`rated` 2) is not counted: it would not be claimed either. In the
# words of the index `turns_claimable`, so that nothing is read of what is not counted.
_COUNTED = " AND (t.rated = 1 AND t.trainable) = 1 AND (t.answered_by <> '') IN (0, :others)"
# Every rating counts: so the private answers of those who share are looked up by their names, and those
# that wait for consent, however many, are not read. (`+` keeps SQLite from comparing another way than
# the index does.)
_AVAILABLE = (
    f"SELECT {{0}} FROM turns t WHERE {_OWN}{_COUNTED} AND t.channel_kind = 'shared'"  # noqa: S608
    f" UNION ALL SELECT {{0}} FROM ({SHARING}) p CROSS JOIN turns t ON {PERSON} = +p.person"
    f" WHERE {_OWN}{_COUNTED} AND t.channel_kind = 'private' AND {ALL_SHARE}"
    f" UNION ALL SELECT {{0}} FROM turns t WHERE {_OWED}{_COUNTED} AND {CONSENT} LIMIT :limit"
)
# In a scope of its own there are few, and nobody may have to be asked.
_AVAILABLE_THERE = f"SELECT {{0}} FROM turns t WHERE {_OWN}{_COUNTED} AND {CONSENT} LIMIT :limit"  # noqa: S608


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A turn that a run may claim: its labels, and what was made of it before."""

    turn: Turn
    labels: Mapping[str, Opinion]
    held_out_before: bool
    seq: int
    """The newest event behind its labels; candidates are ordered by it."""
    age: int = 0
    """Adapters of the line that is trained on which are newer than the one that wrote the answer; where
    that was another model, those that were made since."""
    replayed: bool = False
    """An earlier run has learnt from it: it trains once more, and is not held out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolCount:
    """Where the next training stands."""

    available: int
    """Rated turns that no run has used."""
    waiting_for_consent: int
    """Rated turns of private chats whose speaker has not shared them."""
    off_policy: int = 0
    """Of those available, answers of other models that programs have brought in."""


def count(pool: Pool) -> str:
    """SQL: how many turns a run could claim now, counted up to `:limit`; the others are `Pool.values`."""
    return f"SELECT count(*) FROM ({_which(pool, '1')})"  # noqa: S608


def _which(pool: Pool, column: str) -> str:
    return pool.asked((_AVAILABLE if pool.shared else _AVAILABLE_THERE).format(column))


async def owners(db: aiosqlite.Connection, pool: Pool) -> set[str]:
    """Everybody who is an owner, by the config or by a grant, as ratings name them."""
    rows = await fetch(db, f"SELECT person FROM {OWNERS}", pool.values())  # noqa: S608
    linked = await fetch(db, "SELECT person, identity FROM links")
    found = {person for (person,) in rows}
    return found | {identity for person, identity in linked if person in found}


async def available(db: aiosqlite.Connection, pool: Pool, limit: int) -> int:
    """How many turns a run could claim now, counted up to `limit`: however many there are, it is quick."""
    return await value(db, count(pool), {**pool.values(), "limit": limit})


async def some(db: aiosqlite.Connection, pool: Pool, limit: int) -> list[str]:
    """Of the turns that a run could claim now `limit` at most."""
    found = await fetch(db, _which(pool, "t.id"), {**pool.values(), "limit": limit})
    return [turn for (turn,) in found]


async def has_learnt(db: aiosqlite.Connection, pool: Pool) -> bool:
    """Whether a run of the pool's base model has passed."""
    return bool(
        await value(
            db,
            "SELECT EXISTS (SELECT 1 FROM runs WHERE (scope, model, state) = (?, ?, 'activated'))",
            (pool.scope, pool.model),
        )
    )


async def standing(db: aiosqlite.Connection, pool: Pool) -> PoolCount:
    """Count what a run could claim now."""
    parts = [
        f"SELECT {CONSENT} AS consent, t.answered_by <> '' AS other FROM turns t"  # noqa: S608
        f" WHERE {which}{_COUNTED}"
        for which in (_OWN, _OWED)
    ]
    rows = await fetch(
        db,
        pool.asked(
            "SELECT coalesce(sum(consent), 0), count(*), coalesce(sum(consent AND other), 0)"  # noqa: S608
            f" FROM ({' UNION ALL '.join(parts)})"
        ),
        pool.values(),
    )
    available, rated, off_policy = first(rows) or (0, 0, 0)
    return PoolCount(available=available, waiting_for_consent=rated - available, off_policy=off_policy)


async def candidates(
    db: aiosqlite.Connection, pool: Pool, *, parent: int = 0, **which: Any
) -> list[Candidate]:
    """What a run from `parent` may claim now, the oldest rating first; `which`: see `chosen`."""
    return await build(db, pool, parent, *await chosen(db, pool, **which))


async def chosen(
    db: aiosqlite.Connection,
    pool: Pool,
    *,
    replay: bool = False,
    replay_share: float = 0.0,
    of: Mapping[str, bool] | None = None,
    but: Collection[str] = (),
    at_least: int = 1,
    anew: bool = False,
    sizes: dict[str, int] | None = None,
) -> tuple[list[Row], set[str]]:
    """Rows as `CLAIMABLE` has them of what a run may claim, at most `turns.MOST`, and which are repeated.

    With `replay` also the answers of other base models that this one has not learnt from; with `replay_share`
    so many that earlier runs have learnt from that they are this part of all. With `of` no others than these
    turns, of which it says whether earlier runs have learnt from them; none of `but`. `anew`: with what
    filters have named. `sizes`: see `turns.within`.
    """
    known = pool.values(anew=anew)
    found = await fetch(db, pool.asked(CLAIMABLE.format(fresh(replay))), known)
    found = [row for row in found if (of is None or row[0] in of) and row[0] not in but]
    repeated: set[str] = set()
    if of is not None:
        repeated = {turn for turn, replayed in of.items() if replayed}
    elif wanted := replay_count(len(found), replay_share):
        repeated = set(await _repeated(db, pool, known, wanted)).difference(but)
    if repeated:
        values = {**known, "turns": json.dumps(sorted(repeated))}
        again = await fetch(db, pool.asked(CLAIMABLE.format(AGAIN)), values)
        found = sorted(found + again, key=lambda row: row[2])
    if of is None and not replay:  # a switch to another model takes all, once
        found = await turns.within(db, found, at_least, last=repeated, sizes=sizes)
    return found, repeated


def fresh(replay: bool) -> str:
    """SQL: the turns that no run has learnt from; with `replay` those of other base models, too."""
    return f"SELECT * FROM ({_WHO} WHERE {_OWN} UNION ALL {_WHO} WHERE {_FOREIGN if replay else _OWED})"  # noqa: S608


async def build(
    db: aiosqlite.Connection, pool: Pool, parent: int, rows: Sequence[Row], repeated: Collection[str] = ()
) -> list[Candidate]:
    """Candidates of a run from `parent`, of rows as `CLAIMABLE` has them."""
    line = await lineage(db, parent)
    stored = await turns.some(db, [row[0] for row in rows])
    result: list[Candidate] = []
    for id_, labels, seq, held in rows:
        if (turn := stored.get(id_)) is None:
            continue  # forgotten meanwhile
        own = turn.model == pool.model and not turn.answered_by
        result.append(
            Candidate(
                turn=turn,
                labels=json.loads(labels),
                seq=seq,
                held_out_before=bool(held),
                replayed=id_ in repeated,
                age=sum(
                    version > turn.version if own else made_at > turn.created_at for version, made_at in line
                ),
            )
        )
    return result


def replay_count(fresh: int, share: float) -> int:
    """k = n · s / (1 - s), rounded: beside n fresh answers so many are the part s < 1 of all n + k."""
    return round(fresh * share / (1 - share))


async def _repeated(db: aiosqlite.Connection, pool: Pool, known: Mapping[str, Any], wanted: int) -> list[str]:
    """Turns to repeat: others in every round, by a hash of their ids and of the round before."""
    query = (
        "SELECT t.id, (SELECT max(id) FROM runs WHERE scope = :scope) FROM turns t"  # noqa: S608
        f" WHERE {_TRAINED} AND {CONSENT} ORDER BY t.seq DESC LIMIT :limit"
    )
    rows = await fetch(db, pool.asked(query), {**known, "limit": _REPEATABLE})
    drawn = sorted(rows, key=lambda row: hashlib.sha256(f"{row[1]} {row[0]}".encode()).digest())
    return [row[0] for row in drawn[:wanted]]


async def lineage(db: aiosqlite.Connection, version: int) -> list[tuple[int, float]]:
    """A version and those that it was trained on, newest first, with when each was made."""
    rows = await fetch(
        db,
        "WITH RECURSIVE line (version, parent, at) AS (SELECT version, parent, created_at FROM adapters"
        " WHERE version = ? UNION SELECT a.version, a.parent, a.created_at FROM adapters a"
        " JOIN line ON a.version = line.parent) SELECT version, at FROM line ORDER BY version DESC",
        (version,),
    )
    return [(version, made_at) for version, made_at in rows]


async def replayable(db: aiosqlite.Connection, pool: Pool) -> int:
    """How many rated answers of other base models could be replayed on this one."""
    query = f"SELECT count(*) FROM turns t WHERE {_FOREIGN}{_COUNTED} AND {CONSENT}"  # noqa: S608
    return await value(db, pool.asked(query), pool.values())
