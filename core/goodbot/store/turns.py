"""Turns: insert, look up, history of a place, expiry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.connector import OpenTurn
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, UserRef
from goodbot.api.turns import Turn
from goodbot.store import codec, rollback_window
from goodbot.store.prompts import QUESTION, STANDING
from goodbot.store.query import fetch, first

_COLUMNS = (
    "id, connector, account, channel, channel_kind, thread, talker, messages, response, prompt_tokens,"
    " tokens, logprobs, temperature, model, version, scope, kind, origin, context, created_at,"
    " answered_by, thought, thought_tokens, filters, lifts"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PastExchange:
    """One question and its answer; `talker` is the person (`connector:id`) who asked."""

    turn: str
    talker: str
    question: str
    answer: str
    answer_tokens: int = 0
    """What the sampler counted; 0 where it gave no tokens, here and below."""
    prompt_tokens: int = 0
    """Of the whole prompt that it was answered to."""
    prompt_bytes: int = 0
    """That prompt's words in UTF-8."""
    prompt_messages: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedTurn:
    """One line of the history: a turn and what one rater thinks of it."""

    turn: str
    prompt: str
    response: str
    version: int
    value: float | None
    created_at: float
    instead_of: str = ""
    """The answer that this one was to replace."""


async def insert(db: aiosqlite.Connection, turn: Turn, *, trainable: bool) -> None:
    """Store an answer; `trainable` False keeps it as context only."""
    await db.execute(
        f"INSERT INTO turns ({_COLUMNS}, trainable) VALUES ({', '.join('?' * 26)})",  # noqa: S608
        (
            turn.id,
            turn.channel.connector,
            turn.channel.account,
            turn.channel.id,
            turn.channel.kind,
            turn.channel.thread,
            turn.talker.id,
            codec.dump_json(list(turn.messages)),
            turn.response,
            codec.pack_ints(turn.prompt_tokens),
            codec.pack_ints(turn.tokens),
            codec.pack_floats(turn.logprobs),
            turn.temperature,
            turn.model,
            turn.version,
            turn.scope,
            turn.kind,
            turn.origin,
            codec.dump_json(list(turn.context)),
            turn.created_at,
            turn.answered_by,
            turn.thought,
            turn.thought_tokens,
            codec.dump_filters(turn.filters),
            codec.pack_floats(turn.lifts),
            trainable,
        ),
    )


async def set_prompt(db: aiosqlite.Connection, turn: Turn) -> None:
    """Replace the prompt of a stored turn, and the tokens that depend on it."""
    await db.execute(
        "UPDATE turns SET messages = ?, context = ?, prompt_tokens = ?, tokens = ?, logprobs = ?,"
        " thought = ?, thought_tokens = ?, lifts = ? WHERE id = ?",
        (
            codec.dump_json(list(turn.messages)),
            codec.dump_json(list(turn.context)),
            codec.pack_ints(turn.prompt_tokens),
            codec.pack_ints(turn.tokens),
            codec.pack_floats(turn.logprobs),
            turn.thought,
            turn.thought_tokens,
            codec.pack_floats(turn.lifts),
            turn.id,
        ),
    )


def from_row(row: aiosqlite.Row | tuple[object, ...]) -> Turn:
    """The turn in a row of `COLUMNS`."""
    (
        id_,
        connector,
        account,
        channel,
        kind,
        thread,
        talker,
        messages,
        response,
        prompt_tokens,
        tokens,
        logprobs,
        temperature,
        model,
        version,
        scope,
        turn_kind,
        origin,
        context,
        created_at,
        answered_by,
        thought,
        thought_tokens,
        filters,
        lifts,
    ) = row
    return Turn(
        id=str(id_),
        channel=ChannelRef(
            connector=str(connector),
            account=str(account),
            id=str(channel),
            kind=ChannelKind(str(kind)),
            thread=str(thread),
        ),
        talker=UserRef(connector=str(connector), account=str(account), id=str(talker)),
        messages=json.loads(str(messages)),
        response=str(response),
        prompt_tokens=codec.unpack_ints(prompt_tokens),  # pyright: ignore[reportArgumentType]
        tokens=codec.unpack_ints(tokens),  # pyright: ignore[reportArgumentType]
        logprobs=codec.unpack_floats(logprobs),  # pyright: ignore[reportArgumentType]
        temperature=float(temperature),  # pyright: ignore[reportArgumentType]
        model=str(model),
        version=int(version),  # pyright: ignore[reportArgumentType]
        scope=str(scope),
        kind=str(turn_kind),
        origin=str(origin),
        context=tuple((id_, who) for id_, who in json.loads(str(context))),
        created_at=float(created_at),  # pyright: ignore[reportArgumentType]
        answered_by=str(answered_by),
        thought=str(thought),
        thought_tokens=int(thought_tokens),  # pyright: ignore[reportArgumentType]
        filters=codec.load_filters(str(filters)),
        lifts=codec.unpack_floats(lifts),  # pyright: ignore[reportArgumentType]
    )


async def get(db: aiosqlite.Connection, turn: str) -> Turn | None:
    """One turn by its id."""
    row = first(await fetch(db, f"SELECT {_COLUMNS} FROM turns WHERE id = ?", (turn,)))  # noqa: S608
    return from_row(row) if row else None


async def some(db: aiosqlite.Connection, ids: Sequence[str]) -> dict[str, Turn]:
    """Those of these turns that are stored, by their ids."""
    rows = await fetch(
        db,
        f"SELECT {_COLUMNS} FROM turns WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
        (codec.dump_json(ids),),
    )
    return {row[0]: from_row(row) for row in rows}


async def missing(db: aiosqlite.Connection, ids: Sequence[str]) -> set[str]:
    """Those of these turns that are not stored any more."""
    rows = await fetch(
        db, "SELECT value FROM json_each(?) EXCEPT SELECT id FROM turns", (codec.dump_json(ids),)
    )
    return {row[0] for row in rows}


async def by_message(db: aiosqlite.Connection, channel: ChannelRef, message: str) -> str | None:
    """The turn that a message of ours carries."""
    rows = await fetch(
        db,
        "SELECT turn FROM messages WHERE (connector, account, channel, message) = (?, ?, ?, ?)",
        (channel.connector, channel.account, channel.id, message),
    )
    row = first(rows)
    return row[0] if row else None


async def last_in(db: aiosqlite.Connection, channel: ChannelRef, rated_by: str = "") -> str | None:
    """The newest turn of a place; with `rated_by` the one that this rater rated last.

    That one may be in any thread of the channel where no thread is named: commands often have none.
    """
    place = (channel.connector, channel.account, channel.id, channel.thread)
    if rated_by:
        query, values = (
            "SELECT id FROM turns JOIN labels ON labels.turn = id"
            " WHERE (connector, account, channel) = (?, ?, ?) AND ? IN ('', thread) AND rater = ?"
            " ORDER BY event_seq DESC LIMIT 1",
            (*place, rated_by),
        )
    else:
        query, values = (
            "SELECT id FROM turns WHERE (connector, account, channel, thread) = (?, ?, ?, ?)"
            " AND kind = 'main' ORDER BY seq DESC LIMIT 1",
            place,
        )
    row = first(await fetch(db, query, values))
    return row[0] if row else None


async def conversation(db: aiosqlite.Connection, channel: ChannelRef, limit: int) -> list[PastExchange]:
    """The last `limit` exchanges of a place, oldest first; of an answer and its retries the last."""
    rows = await fetch(
        db,
        f"SELECT t.id, t.connector || ':' || t.talker, {QUESTION}, t.response,"  # noqa: S608
        " length(t.tokens) / 4, length(t.prompt_tokens) / 4 - t.thought_tokens,"
        " (SELECT sum(length(CAST(json_extract(value, '$.content') AS BLOB))) FROM json_each(t.messages)),"
        " json_array_length(t.messages) FROM turns t LEFT JOIN retries r ON r.turn = t.id"
        " WHERE (t.connector, t.account, t.channel, t.thread) = (?, ?, ?, ?) AND t.response <> ''"
        " AND t.kind = 'main'"
        f" AND {STANDING}"
        " ORDER BY t.seq DESC LIMIT ?",
        (channel.connector, channel.account, channel.id, channel.thread, limit),
    )
    found = [
        PastExchange(
            turn=r[0],
            talker=r[1],
            question=r[2],
            answer=r[3],
            answer_tokens=r[4],
            prompt_tokens=r[5],
            prompt_bytes=r[6],
            prompt_messages=r[7],
        )
        for r in rows
    ]
    return found[::-1]


async def history(db: aiosqlite.Connection, limit: int, connector: str = "") -> list[RatedTurn]:
    """The newest turns with the mean of their labels, newest first."""
    rows = await fetch(
        db,
        f"SELECT t.id, {QUESTION}, t.response, t.version,"  # noqa: S608
        " (SELECT avg(value) FROM labels WHERE turn = t.id), t.created_at, coalesce(r.instead_of, '')"
        " FROM turns t LEFT JOIN retries r ON r.turn = t.id WHERE ? IN ('', t.connector)"
        " ORDER BY t.seq DESC LIMIT ?",
        (connector, limit),
    )
    return [
        RatedTurn(
            turn=row[0],
            prompt=row[1],
            response=row[2],
            version=row[3],
            value=row[4],
            created_at=row[5],
            instead_of=row[6],
        )
        for row in rows
    ]


async def open_turns(db: aiosqlite.Connection, connector: str, since: float) -> list[OpenTurn]:
    """The answers on one connector that were sent after `since`, with their messages."""
    found: dict[str, list[MessageRef]] = {}
    rows = await fetch(
        db,
        "SELECT t.id, t.account, t.channel, t.channel_kind, t.thread, m.message FROM turns t"
        " JOIN messages m ON m.turn = t.id WHERE t.connector = ? AND t.created_at > ?"
        " ORDER BY t.seq, m.position",
        (connector, since),
    )
    for turn, account, channel, kind, thread, message in rows:
        place = ChannelRef(
            connector=connector, account=account, id=channel, kind=ChannelKind(kind), thread=thread
        )
        found.setdefault(turn, []).append(MessageRef(channel=place, id=message))
    known = await _reactions(db, connector, since)
    return [
        OpenTurn(turn=turn, messages=tuple(refs), reactions=frozenset(known.get(turn, ())))
        for turn, refs in found.items()
    ]


async def _reactions(
    db: aiosqlite.Connection, connector: str, since: float
) -> dict[str, list[tuple[str, str, str]]]:
    """By turn, the reactions that nobody has taken off again: message, user id, source.

    Also those that were given to an answer whose place this turn took in the same message.
    """
    rows = await fetch(
        db,
        "WITH RECURSIVE shown (id) AS (SELECT id FROM turns WHERE connector = ? AND created_at > ?"
        " UNION SELECT instead_of FROM retries JOIN shown ON turn = id)"
        " SELECT turn, message, rater, source FROM ("
        " SELECT m.turn, m.message, e.rater, e.source, e.kind, row_number() OVER ("
        "  PARTITION BY m.turn, m.message, e.rater, e.source"
        "  ORDER BY e.time_ms DESC, e.tiebreak DESC) AS newest"
        " FROM events e JOIN messages m ON (m.connector, m.account, m.channel, m.message)"
        "  = (e.connector, e.account, e.channel, e.message)"
        " WHERE e.kind IN ('rate', 'retract') AND e.source LIKE 'reaction:%'"
        " AND e.turn IN (SELECT id FROM shown)) WHERE newest = 1 AND kind = 'rate'",
        (connector, since),
    )
    found: dict[str, list[tuple[str, str, str]]] = {}
    for turn, message, rater, source in rows:
        found.setdefault(turn, []).append((message, rater.partition(":")[2], source))
    return found


async def expire(db: aiosqlite.Connection, before: float) -> int:
    """Delete turns older than `before` of which nobody thinks or said anything; returns how many.

    A choice between two answers to its prompt is something said.

    What was taken back keeps nothing, its events go with the turn; what is in quarantine may come
    back.
    """
    rows = await db.execute(
        "DELETE FROM turns WHERE created_at < ?"  # noqa: S608
        " AND rated = 0 AND NOT EXISTS (SELECT 1 FROM events e WHERE e.turn = turns.id"
        f" AND e.kind NOT IN ('rate', 'retract') AND {rollback_window.KEPT})"
        " AND NOT EXISTS (SELECT 1 FROM pairs p WHERE p.turn = turns.id AND p.choice <> 'skip')"
        " AND NOT EXISTS (SELECT 1 FROM run_items WHERE run_items.turn = turns.id)",
        (before,),
    )
    return rows.rowcount
