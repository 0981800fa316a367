# SPDX-License-Identifier: Apache-2.0
"""What judges make of answers that nobody rated.

A judgement is no rating and is no label: it counts only while nobody has rated the answer, and only in runs,
under the name `judge:NAME` in the place of a rater. What a person says of the answer, before or after, wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.judge import JUDGE
from goodbot.api.labels import Opinion
from goodbot.store import codec, rollback_window, training_pool, turns
from goodbot.store.consent import CONSENT
from goodbot.store.query import Row, fetch, records
from goodbot.store.training_pool import Pool

RATER = f"{JUDGE}:"
"""What stands before a judge's name."""
TRIES = 3
"""So often an answer is given to a judge that does not answer."""
EPISODE = "episode"
"""In the place of a judge's name: the value is that of what the episode came to."""
_AFTER = 8
"""Later answers of the same person there, of which one may go on from an answer."""
_CLAIMED = 2000
"""Of the judged answers that a run may take, so many of the newest."""
_BEFORE = 50
"""Steps of an agent that an outcome is credited to, at most."""
_FREE = (
    f"(t.scope, t.model) = (:scope, :model) AND t.trainable AND t.rated = 0 AND t.spent IS NULL AND {CONSENT}"  # noqa: S608
    f" AND (:others OR t.answered_by = '') AND NOT {training_pool.ASIDE}"
    # Who said something of it in words, or asked for another answer, has spoken.
    " AND NOT EXISTS (SELECT 1 FROM retries l WHERE l.instead_of = t.id)"
    " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.turn = t.id AND e.kind IN ('comment', 'better'))"
)
_TAKEN_BACK = (
    f"EXISTS (SELECT 1 FROM quarantines q WHERE {rollback_window.OF_IT.format('{0}.turn')}"  # noqa: S608
    " AND q.rater IS NULL AND {0}.at BETWEEN q.since AND q.made_at)"
)
_CREDITED = (
    "(j.credit_of IS NULL OR j.value * coalesce((SELECT sum(sign(l.value)) FROM labels l"  # noqa: S608
    " WHERE l.turn = j.credit_of{0}), (SELECT o.value FROM judgements o"
    f" WHERE o.turn = j.credit_of AND o.credit_of IS NULL AND NOT {_TAKEN_BACK.format('o')}), 0) > 0)"
)
_STANDS = f"j.value <> 0 AND t.rated = 0 AND NOT {_TAKEN_BACK.format('j')} AND {_CREDITED.format('')}"
"""SQL: a judgement `j` of an answer `t` counts: nobody has rated it, what it is credited with is so still."""
FOUND = f"(SELECT j.value FROM judgements j WHERE j.turn = t.id AND j.credit_of IS NULL AND {_STANDS})"  # noqa: S608
"""SQL: what a judge has found of an answer `t` that nobody rated, as 1 or -1; NULL: nothing that counts."""
_SHOWN = f"(j.value = 0 AND NOT {_TAKEN_BACK.format('j')} OR {_STANDS})"
"""SQL: it is told as what a judge has said: it counts, or is neither good nor bad."""
_SAME = "(n.connector, n.account, n.channel, n.thread, n.talker)"
_PLACE = "(t.connector, t.account, t.channel, t.thread, t.talker)"
_NO_RETRY = "NOT EXISTS (SELECT 1 FROM retries r WHERE r.turn = n.id)"


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCounts:
    """Of answers that nobody rated."""

    good: int
    bad: int
    neither: int
    closed: int
    """Nothing came after them in time."""
    waiting: int
    """A judge did not answer: it is asked again."""
    failed: int
    """It did not answer for the last time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeOutcome:
    """What an agent's last answer came to, for the steps before it."""

    turn: str
    sign: int


async def due(
    db: aiosqlite.Connection, pool: Pool, *, since: float, now: float, again: float, limit: int
) -> list[str]:
    """Answers made after `since` that are to be judged, or to be closed, oldest first.

    `again`: when one would be due again that was asked about now. What waits for longer than that was asked
    about before our clock was set back.
    """
    rows = await fetch(
        db,
        "SELECT t.id FROM turns t INDEXED BY turns_unrated LEFT JOIN judgements j ON j.turn = t.id"  # noqa: S608
        f" WHERE {_FREE} AND t.kind = 'main'"
        " AND t.created_at > :since AND t.response <> ''"
        " AND (j.turn IS NULL OR (j.state = 'waiting' AND (j.at <= :now OR j.at > :again)))"
        " ORDER BY t.created_at, t.seq LIMIT :limit",
        {**pool.values(), "since": since, "now": now, "again": again, "limit": limit},
    )
    return [row[0] for row in rows]


async def after(db: aiosqlite.Connection, turn: str) -> list[str]:
    """The next answers of the same person in the same place, oldest first, without retries."""
    return await _beside(db, turn, "n.seq > t.seq", "n.seq", _AFTER)


async def before(db: aiosqlite.Connection, turn: str) -> list[str]:
    """The answers before it of the same person in the same place, newest first, of other programs."""
    return await _beside(db, turn, "n.seq < t.seq AND n.origin = 'captured'", "n.seq DESC", _BEFORE)


async def _beside(db: aiosqlite.Connection, turn: str, which: str, order: str, limit: int) -> list[str]:
    rows = await fetch(
        db,
        f"SELECT n.id FROM turns t JOIN turns n ON {_SAME} = {_PLACE} AND {which}"  # noqa: S608
        f" WHERE t.id = ? AND n.kind = 'main' AND {_NO_RETRY} ORDER BY {order} LIMIT ?",
        (turn, limit),
    )
    return [row[0] for row in rows]


async def begin(db: aiosqlite.Connection, turn: str, *, now: float, again: float) -> bool:
    """Before a judge is asked, so that tries end whatever ends this process; `again`: when it is due again.

    False where it has been tried often enough: that is the end of it.
    """
    await db.execute(
        "INSERT INTO judgements (turn, state, at) VALUES (?, 'waiting', ?) ON CONFLICT DO NOTHING",
        (turn, now),
    )
    rows = await fetch(
        db,
        "UPDATE judgements SET state = iif(tries < ?, 'waiting', 'failed'), tries = tries + 1, at = ?"
        " WHERE turn = ? AND state = 'waiting' RETURNING state",
        (TRIES, again, turn),
    )
    return [state for (state,) in rows] == ["waiting"]


async def not_tried(db: aiosqlite.Connection, turn: str) -> None:
    """The try that has begun is none: whom the judge asks was busy."""
    await db.execute(
        "UPDATE judgements SET tries = tries - 1 WHERE turn = ? AND state = 'waiting' AND tries > 0", (turn,)
    )


async def settle(
    db: aiosqlite.Connection,
    turn: str,
    judge: str,
    *,
    said_at: float,
    value: float,
    votes: Iterable[int | None] = (),
) -> None:
    """What the judge has said of what came at `said_at`. Nothing where the answer is gone, or judged already.

    What takes back all of a time takes back what people wrote then, whenever it was judged.
    """
    await db.execute(
        "UPDATE judgements SET state = 'judged', judge = ?, value = ?, votes = ?, at = ?"
        " WHERE turn = ? AND state = 'waiting'",
        (judge, value, codec.dump_json(list(votes)), said_at, turn),
    )


async def close(db: aiosqlite.Connection, turn: str, now: float) -> None:
    """Nothing came after it in time."""
    await db.execute(
        "INSERT INTO judgements (turn, state, at) VALUES (?, 'closed', ?)"
        " ON CONFLICT (turn) DO UPDATE SET state = 'closed', at = excluded.at WHERE"
        " judgements.state = 'waiting'",
        (turn, now),
    )


async def credit(db: aiosqlite.Connection, turn: str, outcome: str, value: float, now: float) -> None:
    """Give a step what its episode came to, unless it was judged by itself."""
    await db.execute(
        "INSERT INTO judgements (turn, state, judge, value, credit_of, at)"
        " VALUES (:turn, 'judged', :judge, :value, :of, :now) ON CONFLICT (turn) DO UPDATE SET"
        " state = 'judged', judge = :judge, value = :value, credit_of = :of, at = :now"
        " WHERE judgements.value = 0 OR (judgements.credit_of = :of AND judgements.value <> :value)",
        {"turn": turn, "judge": EPISODE, "value": value, "of": outcome, "now": now},
    )


async def outcomes(db: aiosqlite.Connection, pool: Pool, since: float) -> list[EpisodeOutcome]:
    """What agents' answers made after `since` came to, those at the end of several steps."""
    rows = await fetch(
        db,
        "SELECT t.id, sign(coalesce((SELECT sum(sign(l.value)) FROM labels l WHERE l.turn = t.id),"
        " (SELECT j.value FROM judgements j WHERE j.turn = t.id AND j.credit_of IS NULL)))"
        " FROM turns t INDEXED BY turns_by_age"
        " WHERE t.created_at > :since AND (t.scope, t.model) = (:scope, :model)"
        " AND t.trainable AND t.origin = 'captured' AND t.kind = 'main'"
        " AND json_extract(t.messages, '$[#-1].role') = 'tool' ORDER BY t.created_at, t.seq",
        {**pool.values(), "since": since},
    )
    return [EpisodeOutcome(turn=turn, sign=int(sign)) for turn, sign in rows if sign]


async def credited(db: aiosqlite.Connection, turn: str) -> list[str]:
    """The steps that have their value from what this answer came to."""
    return [row[0] for row in await fetch(db, "SELECT turn FROM judgements WHERE credit_of = ?", (turn,))]


async def credited_by(db: aiosqlite.Connection, persons: Sequence[str]) -> set[str]:
    """The steps that have their value from what these persons said of the end of an episode."""
    rows = await fetch(
        db,
        "SELECT j.turn FROM judgements j JOIN labels l ON l.turn = j.credit_of"
        " WHERE l.rater IN (SELECT value FROM json_each(?))",
        (codec.dump_json(list(persons)),),
    )
    return {row[0] for row in rows}


async def labels(db: aiosqlite.Connection, turn: str) -> dict[str, Opinion]:
    """What counts of an answer as judged, as `run_items.labels` has it; empty: nothing does."""
    rows = await fetch(
        db,
        f"SELECT '{RATER}' || j.judge, j.value FROM judgements j JOIN turns t ON t.id = j.turn"  # noqa: S608
        f" WHERE j.turn = ? AND {_STANDS}",
        (turn,),
    )
    return dict(rows)


async def chosen(
    db: aiosqlite.Connection,
    pool: Pool,
    *,
    of: Mapping[str, bool] | None = None,
    unheard: Collection[str] = (),
    anew: bool = False,
    sizes: dict[str, int] | None = None,
) -> list[Row]:
    """The judged answers that a run may claim, as rows for `training_pool.build`, the newest at last.

    With `of` no others. No step of an episode whose end was good or bad by nobody but raters who are
    `unheard`.
    """
    heard = _CREDITED.format(" AND l.rater NOT IN (SELECT value FROM json_each(:unheard))")
    rows = await fetch(
        db,
        f"SELECT t.id, json_object('{RATER}' || j.judge, j.value), 0, 0 FROM judgements j"  # noqa: S608
        f" INDEXED BY judgements_told CROSS JOIN turns t ON t.id = j.turn WHERE {_STANDS} AND {heard}"
        f" AND {_FREE} ORDER BY j.at DESC LIMIT :most",
        {**pool.values(anew=anew), "most": _CLAIMED, "unheard": codec.dump_json(sorted(unheard))},
    )
    rows = rows if of else await turns.within(db, rows, sizes=sizes)
    return [row for row in reversed(rows) if of is None or row[0] in of]


async def taught(db: aiosqlite.Connection) -> list[str]:
    """The turns that runs have taken as judged."""
    rows = await fetch(
        db,
        "SELECT DISTINCT i.turn FROM run_items i, json_each(i.labels) l WHERE l.key GLOB ?",
        (f"{RATER}*",),
    )
    return [row[0] for row in rows]


async def values(db: aiosqlite.Connection, turns: Sequence[str]) -> dict[str, float]:
    """Of these turns, what judges make of those that nobody rated, as far as it counts; 0 is neither."""
    rows = await fetch(
        db,
        "SELECT j.turn, j.value FROM judgements j JOIN turns t ON t.id = j.turn"  # noqa: S608
        f" WHERE j.state = 'judged' AND t.rated = 0 AND {_SHOWN}"
        " AND t.id IN (SELECT value FROM json_each(?))",
        (codec.dump_json(list(turns)),),
    )
    return dict(rows)


async def counts(db: aiosqlite.Connection, pool: Pool) -> JudgedCounts:
    """Of all that is stored and nobody rated; of what is judged, what counts."""
    rows = await fetch(
        db,
        "SELECT coalesce(sum(j.value > 0), 0), coalesce(sum(j.value < 0), 0),"  # noqa: S608
        " coalesce(sum(j.state = 'judged' AND j.value = 0), 0), coalesce(sum(j.state = 'closed'), 0),"
        " coalesce(sum(j.state = 'waiting'), 0), coalesce(sum(j.state = 'failed'), 0)"
        " FROM judgements j JOIN turns t ON t.id = j.turn"
        " WHERE t.rated = 0 AND (t.scope, t.model) = (:scope, :model)"
        f" AND (j.state <> 'judged' OR {_SHOWN})",
        pool.values(),
    )
    [found] = records(JudgedCounts, rows)
    return found


def is_judged(labels: Mapping[str, Opinion]) -> bool:
    """Whether it is a judge, and nobody else, who says this of an answer."""
    return bool(labels) and all(rater.startswith(RATER) for rater in labels)
