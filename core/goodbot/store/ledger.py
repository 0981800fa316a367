"""Rating events (append-only) and the labels that they fold to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.events import MessageRef, OrderKey, RatingEvent, RatingKind, Receipt
from goodbot.ratings import LedgerEvent, fold
from goodbot.store import codec, people, quarantine
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
    """Recompute one label from the ledger; returns the change, or None if there is none.

    All accounts of a person make one label, kept under their identity. An event's id and source
    say something within its account only; to take all back means all that this person said.
    """
    identity = await people.identity(db, rater)
    rows = await fetch(
        db,
        "SELECT e.seq, e.connector || ' ' || e.account, e.event_id, e.rater, e.time_ms, e.tiebreak,"  # noqa: S608
        " e.kind, e.source, e.value, e.retracts FROM events e WHERE e.turn = :turn"
        " AND e.rater IN (SELECT :identity UNION SELECT person FROM links WHERE identity = :identity)"
        f" AND NOT ({quarantine.COVERED})",
        {"turn": turn, "identity": identity},
    )
    found = {f"{place} {event_id}": (seq, event_id) for seq, place, event_id, *_ in rows}
    label = fold(
        LedgerEvent(
            event_id=f"{place} {event_id}", order=OrderKey(time_ms, tiebreak), kind=RatingKind(kind),
            source=source and f"{account} {source}", value=value,
            retracts=retracts and f"{place} {retracts}",
        )
        for _, place, event_id, account, time_ms, tiebreak, kind, source, value, retracts in rows
    )  # fmt: skip
    held = await fetch(
        db, "SELECT value, event_seq FROM labels WHERE (turn, rater) = (?, ?)", (turn, identity)
    )
    before = first(held)
    seq, event_id = found[label.event_id] if label else (None, "")
    after = (label.value, seq) if label else None
    if after == before:
        return None
    if label is None:
        await db.execute("DELETE FROM labels WHERE (turn, rater) = (?, ?)", (turn, identity))
    else:
        await db.execute(
            "INSERT OR REPLACE INTO labels (turn, rater, value, event_id, event_seq)"
            " VALUES (?, ?, ?, ?, ?)",
            (turn, identity, label.value, event_id, seq),
        )
    return LabelChange(
        turn=turn,
        rater=identity,
        before=before[0] if before else None,
        after=label.value if label else None,
    )


async def refold_people(db: aiosqlite.Connection, persons: Sequence[str]) -> list[str]:
    """Recompute all labels of these accounts, whose identities have changed; returns their turns."""
    marks = ", ".join("?" * len(persons))
    rows = await fetch(
        db,
        f"SELECT DISTINCT turn FROM events WHERE rater IN ({marks}) AND turn IS NOT NULL",  # noqa: S608
        persons,
    )
    found = [row[0] for row in rows]
    await db.execute(f"DELETE FROM labels WHERE rater IN ({marks})", tuple(persons))  # noqa: S608
    identities = {await people.identity(db, person) for person in persons}
    for turn in found:
        for identity in identities:
            await refold(db, turn, identity)
    return found


async def rebuild(db: aiosqlite.Connection) -> int:
    """Derive every label again from the ledger; returns how many raters of a turn there are."""
    await db.execute("DELETE FROM labels")
    rows = await fetch(
        db,
        "SELECT DISTINCT turn, coalesce(identity, rater) FROM events"
        " LEFT JOIN links ON person = rater WHERE turn IS NOT NULL",
    )
    pairs = [(row[0], row[1]) for row in rows]
    for turn, rater in pairs:
        await refold(db, turn, rater)
    return len(pairs)


async def labels(db: aiosqlite.Connection, turn: str) -> dict[str, float]:
    """The labels of one turn by rater."""
    rows = await fetch(db, "SELECT rater, value FROM labels WHERE turn = ? ORDER BY rater", (turn,))
    return {row[0]: row[1] for row in rows}


async def lost(db: aiosqlite.Connection, turn: str, before: Mapping[str, float]) -> bool:
    """Whether a label of a turn (`before`, by rater) is gone or different now.

    Accounts that were linked meanwhile speak for one person.
    """
    now = await labels(db, turn)
    current = {rater: now.get(await people.identity(db, rater)) for rater in before}
    return took_back(before, {rater: v for rater, v in current.items() if v is not None})


def took_back(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Whether a label of `before` is gone or different in `now` (both by rater)."""
    return any(now.get(rater) != value for rater, value in before.items())


async def forget_unresolved(db: aiosqlite.Connection, before: float) -> None:
    """Drop ratings of messages that never became ours."""
    await db.execute("DELETE FROM events WHERE turn IS NULL AND received_at < ?", (before,))
