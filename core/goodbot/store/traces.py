# SPDX-License-Identifier: Apache-2.0
"""Answers that other programs have given: what is known of one, and which captures are of one model call.

Two connectors may see one call: a proxy that it passes through, and a hook of the program that made
it. Both name it by the same trace, and what they have seen becomes one turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import CaptureEvent, Outcome, Receipt, UserRef
from goodbot.api.turns import Turn, turn_id
from goodbot.store import codec
from goodbot.store.query import fetch

_WORDS = 20_000
"""Of an answer, by which it is told from other answers of the same trace."""
_LOOKED_AT = 100
"""Captures of one trace, the newest: an agent's turn is many calls under one name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceCapture:
    """One capture of a trace, as a connector saw it."""

    seq: int
    connector: str
    turn: str
    answer: str
    """A hash of the answer's words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SameCall:
    """What is stored of the model call that a capture is of."""

    turn: str = ""
    """Another connector has seen it: the capture is of this turn. Empty: it is a new one."""
    misplaced: Sequence[TraceCapture] = ()
    """Captures of other connectors that were joined to an earlier call of the same trace, and are of
    this one: they came first, and their words are these."""


async def known(db: aiosqlite.Connection, event: CaptureEvent) -> Receipt | None:
    """The receipt that a capture got when it first came."""
    ((receipt, turn),) = await fetch(
        db,
        "SELECT (SELECT receipt FROM inbox WHERE (connector, account, event_id) = (?, ?, ?)),"
        " (SELECT id FROM turns WHERE id = ?)",
        (event.user.connector, event.user.account, event.event_id, turn_id(event)),
    )
    if receipt is not None:
        return codec.load_receipt(receipt)
    if turn is None:
        return None
    return Receipt(
        event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=turn, duplicate=True, digest=event.digest
    )


async def same_call(db: aiosqlite.Connection, event: CaptureEvent) -> SameCall:
    """What other connectors have seen of the model call that a capture is of.

    The newest with the same words; with other words only where it is the one call of its trace, so
    that nothing is guessed. What its own connector has seen under the trace is another call: an
    agent makes many in one turn, and each is a turn of ours.
    """
    rows = await fetch(
        db,
        "SELECT seq, connector, turn, answer FROM traces WHERE trace = ? ORDER BY seq DESC LIMIT ?",
        (event.trace, _LOOKED_AT),
    )
    seen = [TraceCapture(seq=row[0], connector=row[1], turn=row[2], answer=row[3]) for row in rows]
    mine = {one.turn: one.answer for one in seen if one.connector == event.user.connector}
    others = [one for one in seen if one.connector != event.user.connector]
    said = _hash(event.response)
    free = [one for one in others if one.turn not in mine]
    same = [one for one in free if one.answer == said]
    if same or (len(free) == 1 and len(seen) == 1):
        return SameCall(turn=(same or free)[0].turn)
    return SameCall(misplaced=[one for one in others if one.answer == said and mine[one.turn] != said])


async def insert(db: aiosqlite.Connection, event: CaptureEvent, turn: str) -> None:
    """Remember that a capture is of this turn."""
    user = event.user
    await db.execute(
        "INSERT INTO traces (trace, connector, account, channel, talker, turn, answer)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (event.trace, user.connector, user.account, event.channel.id, user.id, turn, _hash(event.response)),
    )


async def move(db: aiosqlite.Connection, seen: Sequence[TraceCapture], turn: str) -> set[str]:
    """Give captures, and the messages that their connectors know them by, to the turn that they are of.

    Returns who has rated those messages, `connector:id`: their labels are to be folded again.
    """
    raters: set[str] = set()
    for one in seen:
        await db.execute("UPDATE traces SET turn = ? WHERE seq = ?", (turn, one.seq))
        await db.execute(
            "UPDATE messages SET turn = ? WHERE turn = ? AND connector = ?", (turn, one.turn, one.connector)
        )
        rows = await fetch(
            db,
            "UPDATE events SET turn = ? WHERE turn = ? AND connector = ? RETURNING rater",
            (turn, one.turn, one.connector),
        )
        raters.update([row[0] for row in rows])
    return raters


async def enrich(db: aiosqlite.Connection, turn: str, seen: Turn, *, same: bool) -> bool:
    """Put what our own server knows of an answer in the place of what somebody else has seen of it.

    False, and nothing is done, where the tokens or the version were known, something has learnt
    from it, or it is rated and not of the `same` words: a rating is of the words that were read.
    """
    rows = await db.execute(
        "UPDATE turns SET messages = ?, response = ?, prompt_tokens = ?, tokens = ?, logprobs = ?,"
        " temperature = ?, filters = ?, lifts = ?, version = ?, answered_by = ?, thought = ?,"
        " thought_tokens = ? WHERE id = ? AND answered_by <> ''"
        " AND tokens = x'' AND spent IS NULL AND own_spent IS NULL AND (rated = 0 OR ?)"
        " AND NOT EXISTS (SELECT 1 FROM run_items WHERE run_items.turn = turns.id)",
        (
            codec.dump_json(list(seen.messages)),
            seen.response,
            codec.pack_ints(seen.prompt_tokens),
            codec.pack_ints(seen.tokens),
            codec.pack_floats(seen.logprobs),
            seen.temperature,
            codec.dump_filters(seen.filters),
            codec.pack_floats(seen.lifts),
            seen.version,
            seen.answered_by,
            seen.thought,
            seen.thought_tokens,
            turn,
            same,
        ),
    )
    return rows.rowcount == 1


def _hash(answer: str) -> str:
    """Of the first words alone: connectors see different white space around them, and others wait."""
    words = answer.split(maxsplit=_WORDS)[:_WORDS]
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


async def reported(db: aiosqlite.Connection, user: UserRef, turn: str) -> bool:
    """Whether this person's program has seen it, too, though another one reported it first."""
    rows = await fetch(
        db,
        "SELECT 1 FROM traces WHERE turn = ? AND (connector, account, channel) = (?, ?, ?) LIMIT 1",
        (turn, user.connector, user.account, user.id),
    )
    return bool(rows)
