"""Rating events (append-only) and the labels that they fold to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.events import MessageRef, OrderKey, RatingEvent, RatingKind, Receipt
from goodbot.ratings import Label, LedgerEvent, fold
from goodbot.store import codec


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelChange:
    """What a rating event did to one rater's label of one turn."""

    turn: str
    rater: str
    before: float | None
    after: float | None


async def receipt(db: aiosqlite.Connection, event: RatingEvent) -> Receipt | None:
    """The receipt that this event got when it first came."""
    async with db.execute(
        "SELECT receipt FROM events WHERE (connector, account, event_id) = (?, ?, ?)",
        (event.user.connector, event.user.account, event.event_id),
    ) as rows:
        row = await rows.fetchone()
    return codec.load_receipt(row[0]) if row else None


async def resolve(db: aiosqlite.Connection, event: RatingEvent) -> str | None:
    """The turn that a rating speaks of, or None while we do not know it."""
    user = event.user
    if event.turn:
        query, values = (
            "SELECT id FROM turns WHERE (id, connector, account, channel) = (?, ?, ?, ?)",
            (event.turn, user.connector, user.account, event.channel.id),
        )
    elif event.message_id:
        query, values = (
            "SELECT turn FROM messages WHERE (connector, account, channel, message) = (?, ?, ?, ?)",
            (user.connector, user.account, event.channel.id, event.message_id),
        )
    elif event.retracts:
        query, values = (
            "SELECT turn FROM events WHERE (connector, account, event_id) = (?, ?, ?)",
            (user.connector, user.account, event.retracts),
        )
    else:
        return None
    async with db.execute(query, values) as rows:
        row = await rows.fetchone()
    return row[0] if row else None


async def insert(
    db: aiosqlite.Connection, event: RatingEvent, turn: str | None, rater: str, answer: Receipt, now: float
) -> LabelChange | None:
    """Append an event; returns what it did to a label, None if it did nothing (yet)."""
    user = event.user
    await db.execute(
        "INSERT INTO events (connector, account, event_id, kind, turn, rater, channel, message, source,"
        " value, retracts, text, time_ms, tiebreak, received_at, receipt)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            user.connector, user.account, event.event_id, event.kind, turn, rater,
            event.channel.id, event.message_id, event.source, event.value, event.retracts,
            event.text, event.order.time_ms, event.order.tiebreak, now, codec.dump_receipt(answer),
        ),
    )  # fmt: skip
    if turn is None:
        return None
    # A retraction that named this event may have come first.
    await db.execute(
        "UPDATE events SET turn = ? WHERE turn IS NULL AND (connector, account, retracts) = (?, ?, ?)",
        (turn, user.connector, user.account, event.event_id),
    )
    return await refold(db, turn, rater)


async def set_receipt(db: aiosqlite.Connection, event: RatingEvent, answer: Receipt) -> None:
    """Complete the receipt in the transaction that inserted the event."""
    await db.execute(
        "UPDATE events SET receipt = ? WHERE (connector, account, event_id) = (?, ?, ?)",
        (codec.dump_receipt(answer), event.user.connector, event.user.account, event.event_id),
    )


async def attach(db: aiosqlite.Connection, turn: str, messages: Sequence[MessageRef]) -> list[LabelChange]:
    """Remember which messages carry a turn, and give it the ratings that overtook this record."""
    raters: set[str] = set()
    for message in messages:
        key = (message.channel.connector, message.channel.account, message.channel.id, message.id)
        await db.execute("INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?)", (*key, turn))
        async with db.execute(
            "UPDATE events SET turn = ? WHERE turn IS NULL"
            " AND (connector, account, channel, message) = (?, ?, ?, ?) RETURNING rater",
            (turn, *key),
        ) as rows:
            raters.update([row[0] async for row in rows])
    changes = [await refold(db, turn, rater) for rater in sorted(raters)]
    return [change for change in changes if change is not None]


async def refold(db: aiosqlite.Connection, turn: str, rater: str) -> LabelChange | None:
    """Recompute one label from the ledger; returns the change, or None if there is none."""
    async with db.execute(
        "SELECT event_id, time_ms, tiebreak, kind, source, value, retracts FROM events"
        " WHERE (turn, rater) = (?, ?)",
        (turn, rater),
    ) as rows:
        events = [
            LedgerEvent(
                event_id=row[0], order=OrderKey(row[1], row[2]), kind=RatingKind(row[3]),
                source=row[4], value=row[5], retracts=row[6],
            )
            async for row in rows
        ]  # fmt: skip
    label = fold(events)
    async with db.execute(
        "SELECT value, event_id FROM labels WHERE (turn, rater) = (?, ?)", (turn, rater)
    ) as rows:
        row = await rows.fetchone()
    before = Label(value=row[0], event_id=row[1]) if row else None
    if label == before:
        return None
    if label is None:
        await db.execute("DELETE FROM labels WHERE (turn, rater) = (?, ?)", (turn, rater))
    else:
        await db.execute(
            "INSERT OR REPLACE INTO labels SELECT turn, rater, value, event_id, seq FROM events"
            " WHERE (turn, rater, event_id) = (?, ?, ?)",
            (turn, rater, label.event_id),
        )
    return LabelChange(
        turn=turn,
        rater=rater,
        before=before.value if before else None,
        after=label.value if label else None,
    )


async def rebuild(db: aiosqlite.Connection) -> int:
    """Derive every label again from the ledger; returns how many there are."""
    await db.execute("DELETE FROM labels")
    async with db.execute("SELECT DISTINCT turn, rater FROM events WHERE turn IS NOT NULL") as rows:
        pairs = [(row[0], row[1]) async for row in rows]
    for turn, rater in pairs:
        await refold(db, turn, rater)
    return len(pairs)


async def labels(db: aiosqlite.Connection, turn: str) -> dict[str, float]:
    """The labels of one turn by rater."""
    async with db.execute("SELECT rater, value FROM labels WHERE turn = ? ORDER BY rater", (turn,)) as rows:
        return {rater: value async for rater, value in rows}


async def forget_unresolved(db: aiosqlite.Connection, before: float) -> None:
    """Drop ratings of messages that never became ours."""
    await db.execute("DELETE FROM events WHERE turn IS NULL AND received_at < ?", (before,))
