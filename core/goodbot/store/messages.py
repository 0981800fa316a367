# SPDX-License-Identifier: Apache-2.0
"""Which messages carry an answer: what is said of one of them is said of the answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import aiosqlite

from goodbot.api.events import MessageRef
from goodbot.store.ledger import LabelChange, regroup
from goodbot.store.query import fetch


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


async def detach(db: aiosqlite.Connection, turn: str, messages: Collection[MessageRef]) -> None:
    """These carry the turn no more; what was said of it there stays said."""
    for message in messages:
        channel = message.channel
        await db.execute(
            "DELETE FROM messages WHERE (connector, account, channel, message, turn) = (?, ?, ?, ?, ?)",
            (channel.connector, channel.account, channel.id, message.id, turn),
        )
