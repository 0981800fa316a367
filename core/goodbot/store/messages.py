# SPDX-License-Identifier: Apache-2.0
"""Which messages carry an answer: what is said of one of them is said of the answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

import aiosqlite

from goodbot.api.connector import SentAnswer
from goodbot.api.events import ChannelRef, MessageRef
from goodbot.store import codec, settings
from goodbot.store.ledger import LabelChange, regroup
from goodbot.store.query import fetch

_AGAIN = "sent again"
_REMEMBERED = 100


async def attach(db: aiosqlite.Connection, turn: str, messages: Sequence[MessageRef]) -> list[LabelChange]:
    """Remember which messages carry a turn, and give it the ratings that overtook this record.

    Those of which that is known already, as of a copy that was sent before a crash, come after them.
    """
    raters: set[str] = set()
    await db.execute("UPDATE messages SET position = position + ? WHERE turn = ?", (len(messages), turn))
    for position, message in enumerate(messages):
        key = (message.channel.connector, message.channel.account, message.channel.id, message.id)
        await db.execute(
            "INSERT OR REPLACE INTO messages (connector, account, channel, message, turn, position)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (*key, turn, position),
        )
        rows = await fetch(
            db,
            "UPDATE events SET turn = ? WHERE turn IS NULL"
            " AND (connector, account, channel, message) = (?, ?, ?, ?) RETURNING rater",
            (turn, *key),
        )
        raters.update([row[0] for row in rows])
    if raters:  # what was taken back by its event's id alone names no message
        rows = await fetch(
            db,
            "UPDATE events SET turn = :turn WHERE turn IS NULL AND (connector, account, retracts)"
            " IN (SELECT connector, account, event_id FROM events WHERE turn = :turn)"
            " RETURNING rater",
            {"turn": turn},
        )
        raters.update([row[0] for row in rows])
    changes = [await regroup(db, turn, rater) for rater in sorted(raters)]
    return [change for change in changes if change is not None]


async def unknown(db: aiosqlite.Connection, place: ChannelRef) -> list[str]:
    """The messages there that were rated and carry no answer that we know of."""
    rows = await fetch(
        db,
        "SELECT DISTINCT message FROM events WHERE turn IS NULL AND message <> ''"
        " AND (connector, account, channel) = (?, ?, ?)",
        (place.connector, place.account, place.id),
    )
    return [row[0] for row in rows]


async def sending_again(db: aiosqlite.Connection, turn: str, question: str) -> None:
    """Remember that an answer may have been sent before, without our hearing of it; the last few are."""
    others = {one: asked for one, asked in (await _again(db)).items() if one != turn}
    last = [*others.items(), (turn, question)][-_REMEMBERED:]
    await settings.set_switch(db, _AGAIN, codec.dump_json(last))


async def _again(db: aiosqlite.Connection) -> dict[str, str]:
    """The turns that were, and the message that each answers."""
    return dict(json.loads(await settings.switch(db, _AGAIN) or "[]"))


async def forget_gone(db: aiosqlite.Connection) -> None:
    """Of answers that are there no more, remember no question either."""
    known = await _again(db)
    rows = await fetch(
        db, "SELECT id FROM turns WHERE id IN (SELECT value FROM json_each(?))", (codec.dump_json([*known]),)
    )
    there = {row[0] for row in rows}
    if len(there) < len(known):
        left = [one for one in known.items() if one[0] in there]
        await settings.set_switch(db, _AGAIN, codec.dump_json(left) if left else "")


async def sent_again(db: aiosqlite.Connection, place: ChannelRef) -> list[SentAnswer]:
    """Those of that channel, with the messages that we know of."""
    questions = await _again(db)
    rows = await fetch(
        db,
        "SELECT t.id, t.response, t.thread, m.message FROM json_each(?) JOIN turns t ON t.id = value"
        " JOIN messages m ON m.turn = t.id WHERE (t.connector, t.account, t.channel) = (?, ?, ?)"
        " AND t.response <> '' ORDER BY t.seq, m.position",
        (codec.dump_json([*questions]), place.connector, place.account, place.id),
    )
    found: dict[tuple[str, str], list[MessageRef]] = {}
    for turn, text, thread, message in rows:
        found.setdefault((turn, text), []).append(
            MessageRef(channel=replace(place, thread=thread), id=message)
        )
    return [
        SentAnswer(turn=turn, text=text, question=questions[turn], messages=tuple(refs))
        for (turn, text), refs in found.items()
    ]


async def detach(db: aiosqlite.Connection, turn: str, messages: Collection[MessageRef]) -> None:
    """These carry the turn no more; what was said of it there stays said."""
    for message in messages:
        channel = message.channel
        await db.execute(
            "DELETE FROM messages WHERE (connector, account, channel, message, turn) = (?, ?, ?, ?, ?)",
            (channel.connector, channel.account, channel.id, message.id, turn),
        )
