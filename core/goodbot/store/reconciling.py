# SPDX-License-Identifier: Apache-2.0
"""What a connector lays beside its platform, to see what was missed: answers, and the reactions on them."""

from __future__ import annotations

from typing import Any

import aiosqlite

from goodbot.api.connector import OpenTurn
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.store import placing
from goodbot.store.query import fetch, value


async def open_turns(db: aiosqlite.Connection, connector: str, since: float) -> list[OpenTurn]:
    """The answers on one connector that were sent after `since`, with their messages.

    Not those with a reaction of somebody who was forgotten: the platform shows it still, as if it was missed.
    """
    found: dict[str, list[MessageRef]] = {}
    rows = await fetch(
        db,
        "SELECT t.id, t.account, t.channel, t.channel_kind, t.thread, m.message FROM turns t"
        " JOIN messages m ON m.turn = t.id WHERE t.connector = ? AND t.created_at > ? AND NOT t.forgotten"
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


async def newest(db: aiosqlite.Connection) -> int:
    """The number of what was said last; 0: nothing was."""
    return await value(db, "SELECT coalesce(max(seq), 0) FROM events")


async def said_since(db: aiosqlite.Connection, connector: str, newest: int) -> set[str]:
    """The messages on one connector of which something was said after that."""
    query = "SELECT DISTINCT message FROM events WHERE seq > ? AND connector = ? AND message IS NOT NULL"
    return {row[0] for row in await fetch(db, query, (newest, connector))}


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
        " SELECT e.time_ms, e.tiebreak, e.connector, e.account, e.kind, m.turn, m.message, e.rater, e.source"
        " FROM events e JOIN messages m ON (m.connector, m.account, m.channel, m.message)"
        "  = (e.connector, e.account, e.channel, e.message)"
        " WHERE e.kind IN ('rate', 'retract') AND e.source LIKE 'reaction:%'"
        " AND e.turn IN (SELECT id FROM shown) ORDER BY e.seq",
        (connector, since),
    )
    said: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        said.setdefault(tuple(row[5:]), []).append(row)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for (turn, message, rater, source), each in said.items():
        _, last = max(zip(placing.in_order(row[:4] for row in each), range(len(each)), strict=True))
        if each[last][4] == "rate":
            found.setdefault(turn, []).append((message, rater.partition(":")[2], source))
    return found
