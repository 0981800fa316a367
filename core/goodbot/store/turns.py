# SPDX-License-Identifier: Apache-2.0
"""Turns: insert, look up, history of a place, expiry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.api.turns import CHOICE, Turn
from goodbot.store import codec, rollback_window
from goodbot.store.prompts import QUESTION, STANDING
from goodbot.store.query import Row, fetch, first, records, value

MOST = 128 * 2**20
"""Characters that a run takes at once: more fills the memory. What is left waits for the next."""
_PROMPT = ("messages", "context", "prompt_tokens", "tokens", "logprobs", "thought", "thought_tokens", "lifts")
"""The columns of a prompt, and of what depends on it."""
_COLUMNS = (
    *("id", "connector", "account", "channel", "channel_kind", "thread", "talker", "response", *_PROMPT),
    *("temperature", "model", "version", "scope", "kind", "origin", "created_at", "answered_by", "filters"),
    "own",
)
_TURN = f"SELECT {', '.join(_COLUMNS)} FROM turns WHERE id"  # noqa: S608


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
    columns = (*_COLUMNS, "trainable")
    await db.execute(
        f"INSERT INTO turns ({', '.join(columns)}) VALUES (:{', :'.join(columns)})",  # noqa: S608
        {**_stored(turn), "trainable": trainable},
    )


async def set_prompt(db: aiosqlite.Connection, turn: Turn) -> None:
    """Replace the prompt of a stored turn, and the tokens that depend on it."""
    changed = ", ".join(f"{column} = :{column}" for column in _PROMPT)
    await db.execute(f"UPDATE turns SET {changed} WHERE id = :id", _stored(turn))  # noqa: S608


def _stored(turn: Turn) -> dict[str, Any]:
    """By column."""
    plain = {name: getattr(turn, name, None) for name in _COLUMNS}
    return plain | {
        "connector": turn.channel.connector,
        "account": turn.channel.account,
        "channel": turn.channel.id,
        "channel_kind": turn.channel.kind,
        "thread": turn.channel.thread,
        "talker": turn.talker.id,
        "messages": codec.dump_json(list(turn.messages)),
        "context": codec.dump_json(list(turn.context)),
        "prompt_tokens": codec.pack_ints(turn.prompt_tokens),
        "tokens": codec.pack_ints(turn.tokens),
        "logprobs": codec.pack_floats(turn.logprobs),
        "lifts": codec.pack_floats(turn.lifts),
        "filters": codec.dump_filters(turn.filters),
        "own": turn.own or None,
    }


def _turn(row: Row) -> Turn:
    told = dict(zip(_COLUMNS, row, strict=True))
    place = {"connector": told.pop("connector"), "account": told.pop("account")}
    kind, thread = ChannelKind(told.pop("channel_kind")), told.pop("thread")
    return Turn(
        channel=ChannelRef(**place, id=told.pop("channel"), kind=kind, thread=thread),
        talker=UserRef(**place, id=told.pop("talker")),
        messages=json.loads(told.pop("messages")),
        context=tuple((id_, who) for id_, who in json.loads(told.pop("context"))),
        prompt_tokens=codec.unpack_ints(told.pop("prompt_tokens")),
        tokens=codec.unpack_ints(told.pop("tokens")),
        logprobs=codec.unpack_floats(told.pop("logprobs")),
        lifts=codec.unpack_floats(told.pop("lifts")),
        filters=codec.load_filters(told.pop("filters")),
        own=told.pop("own") or "",
        **told,
    )


async def get(db: aiosqlite.Connection, turn: str) -> Turn | None:
    """One turn by its id."""
    row = first(await fetch(db, f"{_TURN} = ?", (turn,)))
    return _turn(row) if row else None


async def some(db: aiosqlite.Connection, ids: Sequence[str]) -> dict[str, Turn]:
    """Those of these turns that are stored, by their ids."""
    rows = await fetch(db, f"{_TURN} IN (SELECT value FROM json_each(?))", (codec.dump_json(ids),))  # noqa: S608
    return {row[0]: _turn(row) for row in rows}


async def within(
    db: aiosqlite.Connection,
    rows: Sequence[Row],
    at_least: int = 1,
    last: Collection[str] = (),
    sizes: dict[str, int] | None = None,
) -> list[Row]:
    """Those of these rows, which begin with turns' ids, that a run takes at once: `at_least` so many.

    What no run would claim, as ties, takes room last, and the turns of `last` before it. `sizes`: characters
    of turns, as far as they are known; what is counted here is put there.
    """
    known: dict[str, int] = {} if sizes is None else sizes
    ids = [row[0] for row in sorted(rows, key=lambda row: row[0] in last)]
    size = "length(t.messages) + length(t.response) + length(t.prompt_tokens) + length(t.tokens)"
    found = await fetch(
        db,
        f"SELECT t.id, coalesce(CAST(json_extract(j.value, '$[1]') AS INTEGER), {size}) FROM"  # noqa: S608
        " json_each(?) j CROSS JOIN turns t"
        " ON t.id = json_extract(j.value, '$[0]') ORDER BY t.rated = 2, j.key",
        (codec.dump_json([(one, known.get(one)) for one in ids]),),
    )
    known.update(found)
    upto = [*itertools.accumulate(count for _, count in found)]
    kept = {row[0] for n, row in enumerate(found) if upto[n] <= MOST or n < at_least}
    return [row for row in rows if row[0] in kept]


async def off_policy(db: aiosqlite.Connection, model: str, ids: Sequence[str]) -> int:
    """How many of these turns another model than this base or an adapter of it has written."""
    return await value(
        db,
        "SELECT count(*) FROM turns WHERE id IN (SELECT value FROM json_each(:turns))"
        " AND (answered_by <> '' OR model <> :model)",
        {"model": model, "turns": codec.dump_json(ids)},
    )


async def missing(db: aiosqlite.Connection, ids: Sequence[str]) -> set[str]:
    """Those of these turns that are not stored any more."""
    rows = await fetch(
        db, "SELECT value FROM json_each(?) EXCEPT SELECT id FROM turns", (codec.dump_json(ids),)
    )
    return {row[0] for row in rows}


async def by_message(db: aiosqlite.Connection, channel: ChannelRef, message: str) -> str | None:
    """The turn that a message of ours carries."""
    return await value(
        db,
        "SELECT turn FROM messages WHERE (connector, account, channel, message) = (?, ?, ?, ?)",
        (channel.connector, channel.account, channel.id, message),
    )


async def last_in(db: aiosqlite.Connection, channel: ChannelRef, rated_by: str = "") -> str | None:
    """The newest turn of a place; with `rated_by` the one that this rater rated last.

    That one may be in any thread of the channel where no thread is named: commands often have none.
    """
    place = (channel.connector, channel.account, channel.id, channel.thread)
    if rated_by:
        query, values = (
            "SELECT id FROM turns JOIN labels ON labels.turn = id"
            " WHERE (connector, account, channel) = (?, ?, ?) AND ? IN ('', thread) AND rater = ?"
            " AND kind = 'main'"
            " ORDER BY event_seq DESC LIMIT 1",
            (*place, rated_by),
        )
    else:
        query, values = (
            "SELECT id FROM turns WHERE (connector, account, channel, thread) = (?, ?, ?, ?)"
            " AND kind = 'main' ORDER BY seq DESC LIMIT 1",
            place,
        )
    return await value(db, query, values)


async def conversation(db: aiosqlite.Connection, channel: ChannelRef, limit: int) -> list[PastExchange]:
    """The last `limit` exchanges of a place, oldest first; of an answer and its retries the last."""
    rows = await fetch(
        db,
        f"SELECT t.id, t.connector || ':' || t.talker, {QUESTION}, t.response,"  # noqa: S608
        " length(t.tokens) / 4, length(t.prompt_tokens) / 4 - t.thought_tokens,"
        " (SELECT sum(length(CAST(json_extract(value, '$.content') AS BLOB))) FROM json_each(t.messages)),"
        " json_array_length(t.messages) FROM turns t LEFT JOIN retries r ON r.turn = t.id"
        " WHERE (t.connector, t.account, t.channel, t.thread) = (?, ?, ?, ?) AND t.response <> ''"
        f" AND t.kind = 'main' AND {STANDING} ORDER BY t.seq DESC LIMIT ?",
        (channel.connector, channel.account, channel.id, channel.thread, limit),
    )
    return records(PastExchange, rows)[::-1]


async def history(db: aiosqlite.Connection, limit: int, connector: str = "") -> list[RatedTurn]:
    """The newest turns with the mean of their labels, newest first."""
    rows = await fetch(
        db,
        f"SELECT t.id, {QUESTION}, t.response, t.version,"  # noqa: S608
        " (SELECT avg(value) FROM labels WHERE turn = t.id), t.created_at, coalesce(r.instead_of, '')"
        " FROM turns t LEFT JOIN retries r ON r.turn = t.id WHERE ? IN ('', t.connector)"
        f" AND t.kind <> '{CHOICE}' ORDER BY t.seq DESC LIMIT ?",
        (connector, limit),
    )
    return records(RatedTurn, rows)


async def expire(db: aiosqlite.Connection, before: float) -> int:
    """Delete turns older than `before` of which nobody thinks or said anything; returns how many.

    A choice between two answers to its prompt is something said.

    What was taken back keeps nothing, its events go with the turn; what is in quarantine may come
    back.
    """
    rows = await db.execute(
        "DELETE FROM turns WHERE created_at < ?"  # noqa: S608
        " AND rated = 0 AND NOT EXISTS (SELECT 1 FROM events e WHERE e.turn = turns.id"
        f" AND (e.kind NOT IN ('rate', 'retract') AND {rollback_window.KEPT} OR {rollback_window.RETURNS}))"
        " AND NOT EXISTS (SELECT 1 FROM pairs p WHERE p.turn = turns.id AND p.choice <> 'skip')"
        " AND NOT EXISTS (SELECT 1 FROM run_items WHERE run_items.turn = turns.id)",
        (before,),
    )
    return rows.rowcount
