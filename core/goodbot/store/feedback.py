"""What people typed at an answer: reasons, better answers, and the pairs that those make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import Message, RatingKind
from goodbot.store import codec, rollback_window
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """A reason (COMMENT) or a better answer (BETTER) that somebody typed. `at`: seconds since the epoch."""

    turn: str
    kind: RatingKind
    rater: str
    text: str
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Preference:
    """Two answers to one prompt, of which people prefer one."""

    turn: str
    """The answer of ours that the prompt was given for."""
    messages: Sequence[Message]
    preferred: str
    other: str
    source: str
    """`better`: somebody typed the preferred one; `retry`: both are ours, and both are rated; `choice`:
    both are ours, by two versions, and an owner was asked blind."""
    rater: str = ""
    """Who typed or chose it, `connector:id`."""


async def remarks(db: aiosqlite.Connection, turns: Sequence[str]) -> list[Remark]:
    """What stands of what was typed at these answers, oldest first."""
    rows = await fetch(
        db,
        "SELECT e.turn, e.kind, e.rater, e.text, e.received_at FROM events e"  # noqa: S608
        " WHERE e.turn IN (SELECT value FROM json_each(?)) AND e.kind IN ('comment', 'better')"
        f" AND {rollback_window.STANDS} ORDER BY e.time_ms, e.tiebreak, e.seq",
        (codec.dump_json(list(turns)),),
    )
    return [
        Remark(turn=row[0], kind=RatingKind(row[1]), rater=row[2], text=row[3], at=row[4]) for row in rows
    ]


async def preferences(db: aiosqlite.Connection, pool: Pool) -> list[Preference]:
    """All pairs that may be learnt from: with consent, of the pool's base model; oldest first.

    Of several better answers that one person typed for an answer the last counts. Of an answer and
    its retry the one with the higher mean of its labels is preferred; equal ones are no pair.
    """
    may = (
        "t.scope = :scope AND t.model = :model AND t.trainable"
        f" AND (:others OR t.answered_by = '') AND {CONSENT}"
    )
    typed = await fetch(
        db,
        "SELECT t.id, t.messages, e.text, t.response, e.rater FROM events e"  # noqa: S608
        f" JOIN turns t ON t.id = e.turn WHERE e.kind = 'better' AND {rollback_window.STANDS} AND {may}"
        " ORDER BY e.time_ms, e.tiebreak, e.seq",
        pool.values(),
    )
    last = {(row[0], row[4]): row for row in typed}
    better = [
        Preference(
            turn=row[0],
            messages=json.loads(row[1]),
            preferred=row[2],
            other=row[3],
            source="better",
            rater=row[4],
        )
        for row in last.values()
        if row[2] != row[3]
    ]
    mean = "(SELECT avg(value) FROM labels WHERE turn = {})"
    tried = await fetch(
        db,
        "SELECT t.id, t.messages, t.response, l.response,"  # noqa: S608
        f" {mean.format('t.id')} AS first, {mean.format('l.id')} AS second"
        " FROM retries r JOIN turns t ON t.id = r.instead_of JOIN turns l ON l.id = r.turn"
        f" WHERE {may} AND l.trainable AND l.model = t.model AND first <> second ORDER BY l.seq",
        pool.values(),
    )
    chosen = await fetch(
        db,
        "SELECT t.id, t.messages, iif(p.choice = 'new', p.new_answer, p.old_answer),"  # noqa: S608
        " iif(p.choice = 'new', p.old_answer, p.new_answer), p.chosen_by FROM pairs p"
        f" JOIN turns t ON t.id = p.turn WHERE p.choice IN ('old', 'new') AND {may} ORDER BY p.id",
        pool.values(),
    )
    better += [
        Preference(
            turn=row[0],
            messages=json.loads(row[1]),
            preferred=row[2],
            other=row[3],
            source="choice",
            rater=row[4],
        )
        for row in chosen
    ]
    return better + [
        Preference(
            turn=row[0],
            messages=json.loads(row[1]),
            source="retry",
            preferred=row[3] if row[5] > row[4] else row[2],
            other=row[2] if row[5] > row[4] else row[3],
        )
        for row in tried
    ]
