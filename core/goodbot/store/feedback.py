# SPDX-License-Identifier: Apache-2.0
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

_MAY = (
    f"t.scope = :scope AND t.model = :model AND t.trainable AND (:others OR t.answered_by = '') AND {CONSENT}"
)
_MEAN = "(SELECT avg(value) FROM labels WHERE turn = {})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """A reason (COMMENT) or a better answer (BETTER) that somebody typed. `at`: seconds since the epoch.

    `counts`: it is not left out.
    """

    turn: str
    kind: RatingKind
    rater: str
    text: str
    at: float
    counts: bool = True


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


async def remarks(db: aiosqlite.Connection, turns: Sequence[str], *, left_out: bool = False) -> list[Remark]:
    """What stands of what was typed at these answers, oldest first; and what is `left_out` of it."""
    rows = await fetch(
        db,
        f"SELECT e.turn, e.kind, e.rater, e.text, e.received_at, NOT {rollback_window.WITHIN} AS counts"  # noqa: S608
        " FROM events e WHERE e.turn IN (SELECT value FROM json_each(:turns))"
        f" AND e.kind IN ('comment', 'better') AND {rollback_window.KEPT} AND (counts OR :left_out)"
        " ORDER BY e.time_ms, e.tiebreak, e.seq",
        {"turns": codec.dump_json(list(turns)), "left_out": left_out},
    )
    return [
        Remark(turn=turn, kind=RatingKind(kind), rater=rater, text=text, at=at, counts=bool(counts))
        for turn, kind, rater, text, at, counts in rows
    ]


async def preferences(db: aiosqlite.Connection, pool: Pool) -> list[Preference]:
    """All pairs that may be learnt from: with consent, of the pool's base model; oldest first.

    Of several better answers that one person typed for an answer the last counts. Of an answer and
    its retry the one with the higher mean of its labels is preferred; equal ones are no pair.
    """
    typed = await fetch(
        db,
        "SELECT t.id, e.rater, t.messages, e.text, t.response FROM events e"  # noqa: S608
        f" JOIN turns t ON t.id = e.turn WHERE e.kind = 'better' AND {rollback_window.STANDS} AND {_MAY}"
        " ORDER BY e.time_ms, e.tiebreak, e.seq",
        pool.values(),
    )
    tried = await fetch(
        db,
        "SELECT id, '', messages, iif(second > first, later, response),"  # noqa: S608
        " iif(second > first, response, later) FROM ("
        f"  SELECT t.id, t.messages, t.response, l.response AS later, l.seq, {_MEAN.format('t.id')} AS first,"
        f"  {_MEAN.format('l.id')} AS second"
        "  FROM retries r JOIN turns t ON t.id = r.instead_of JOIN turns l ON l.id = r.turn"
        f"  WHERE {_MAY} AND l.trainable AND l.model = t.model"
        ") WHERE first <> second ORDER BY seq",
        pool.values(),
    )
    chosen = await fetch(
        db,
        "SELECT t.id, p.chosen_by, t.messages, iif(p.choice = 'new', p.new_answer, p.old_answer),"  # noqa: S608
        " iif(p.choice = 'new', p.old_answer, p.new_answer) FROM pairs p"
        f" JOIN turns t ON t.id = p.turn WHERE p.choice IN ('old', 'new') AND {_MAY} ORDER BY p.id",
        pool.values(),
    )
    last = {(row[0], row[1]): row for row in typed}
    better = [row for row in last.values() if row[3] != row[4]]
    return [
        Preference(
            turn=turn,
            rater=rater,
            messages=json.loads(messages),
            preferred=preferred,
            other=other,
            source=source,
        )
        for source, rows in (("better", better), ("choice", chosen), ("retry", tried))
        for turn, rater, messages, preferred, other in rows
    ]
