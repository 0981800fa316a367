"""Rating events (append-only) and the labels that they fold to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.events import MessageRef, OrderKey, RatingEvent, RatingKind, Receipt
from goodbot.ratings import Label, LedgerEvent, fold
from goodbot.store import codec
from goodbot.store.query import fetch, first


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelChange:
    """What a rating event did to one rater's label of one turn."""

    turn: str
    rater: str
    before: float | None
    after: float | None


async def receipt(db: aiosqlite.Connection, event: RatingEvent) -> Receipt | None:
    """The receipt that this event got when it first came."""
    row = first(
        await fetch(
            db,
            "SELECT receipt FROM events WHERE (connector, account, event_id) = (?, ?, ?)",
            (event.user.connector, event.user.account, event.event_id),
        )
    )
    return codec.load_receipt(row[0]) if row else None


async def resolve(db: aiosqlite.Connection, event: RatingEvent) -> str | None:
    """The turn that a rating speaks of, or None while we do not know it.

    A client can send any turn with a button; where we know the message, its turn decides.
    """
    account = (event.user.connector, event.user.account)
    place = (*account, event.channel.id)
    if event.message_id:
        query = (
            "SELECT turn FROM messages WHERE (connector, account, channel, message) = (?, ?, ?, ?)"
        )
        found = await _first(db, query, (*place, event.message_id))
        if found is not None:
            return found if event.turn in ("", found) else None
    if event.turn:
        query = "SELECT id FROM turns WHERE (connector, account, channel, id) = (?, ?, ?, ?)"
        return await _first(db, query, (*place, event.turn))
    if event.retracts:
        query = "SELECT turn FROM events WHERE (connector, account, event_id) = (?, ?, ?)"
        return await _first(db, query, (*account, event.retracts))
    return None


async def _first(db: aiosqlite.Connection, query: str, values: tuple[str, ...]) -> str | None:
    row = first(await fetch(db, query, values))
    return row[0] if row else None


async def insert(
    db: aiosqlite.Connection,
    event: RatingEvent,
    turn: str | None,
    rater: str,
    answer: Receipt,
    now: float,
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


async def attach(
    db: aiosqlite.Connection, turn: str, messages: Sequence[MessageRef]
) -> list[LabelChange]:
    """Remember which messages carry a turn, and give it the ratings that overtook this record."""
    raters: set[str] = set()
    for message in messages:
        key = (message.channel.connector, message.channel.account, message.channel.id, message.id)
        await db.execute("INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?)", (*key, turn))
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
    changes = [await refold(db, turn, rater) for rater in sorted(raters)]
    return [change for change in changes if change is not None]


async def refold(db: aiosqlite.Connection, turn: str, rater: str) -> LabelChange | None:
    """Recompute one label from the ledger; returns the change, or None if there is none."""
    rows = await fetch(
        db,
        "SELECT event_id, time_ms, tiebreak, kind, source, value, retracts FROM events"
        " WHERE (turn, rater) = (?, ?)",
        (turn, rater),
    )
    events = [
        LedgerEvent(
            event_id=row[0], order=OrderKey(row[1], row[2]), kind=RatingKind(row[3]),
            source=row[4], value=row[5], retracts=row[6],
        )
        for row in rows
    ]  # fmt: skip
    label = fold(events)
    row = first(
        await fetch(
            db, "SELECT value, event_id FROM labels WHERE (turn, rater) = (?, ?)", (turn, rater)
        )
    )
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
    rows = await fetch(db, "SELECT DISTINCT turn, rater FROM events WHERE turn IS NOT NULL")
    pairs = [(row[0], row[1]) for row in rows]
    for turn, rater in pairs:
        await refold(db, turn, rater)
    return len(pairs)


async def labels(db: aiosqlite.Connection, turn: str) -> dict[str, float]:
    """The labels of one turn by rater."""
    rows = await fetch(db, "SELECT rater, value FROM labels WHERE turn = ? ORDER BY rater", (turn,))
    return {row[0]: row[1] for row in rows}


def took_back(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Whether a label of `before` is gone or different in `now` (both by rater)."""
    return any(now.get(rater) != value for rater, value in before.items())


async def forget_unresolved(db: aiosqlite.Connection, before: float) -> None:
    """Drop ratings of messages that never became ours."""
    await db.execute("DELETE FROM events WHERE turn IS NULL AND received_at < ?", (before,))
