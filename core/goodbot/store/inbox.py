# SPDX-License-Identifier: Apache-2.0
"""Messages and commands under way, and what connectors asked us to keep."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.api.events import Event, Receipt
from goodbot.store import codec, refusals
from goodbot.store.query import Row, fetch, first, value


async def receipt(db: aiosqlite.Connection, event: Event) -> Receipt | None:
    """The receipt that this message or command got when it first came."""
    row = first(
        await fetch(
            db, "SELECT receipt FROM inbox WHERE (connector, account, event_id) = (?, ?, ?)", _key(event)
        )
    )
    return codec.load_receipt(row[0]) if row else None


async def insert(db: aiosqlite.Connection, event: Event, answer: Receipt, now: float, *, open_: bool) -> None:
    """Remember an event; with `open_` its payload too, until `close` says that it is done.

    It is done after what waits already, though our clock was set back since that came.
    """
    await db.execute(
        "INSERT INTO inbox VALUES (?, ?, ?, ?, ?, iif(?, max(?,"
        " (SELECT coalesce(max(received_at) + 0.000001, 0) FROM inbox WHERE payload <> '')), ?))",
        (
            *_key(event),
            codec.dump_event(event) if open_ else "",
            codec.dump_receipt(answer, event.digest),
            open_,
            now,
            now,
        ),
    )


async def close(db: aiosqlite.Connection, event: Event, answer: Receipt | None = None) -> None:
    """The event is done: forget its words, keep its id; `answer` replaces the receipt."""
    await db.execute(
        "UPDATE inbox SET payload = '', receipt = coalesce(?, receipt)"
        " WHERE (connector, account, event_id) = (?, ?, ?)",
        (codec.dump_receipt(answer, event.digest) if answer else None, *_key(event)),
    )


async def refuse(db: aiosqlite.Connection, event: Event, now: float) -> None:
    """The event came to nothing: keep nothing of it but that it was refused."""
    await refusals.add(db, event, now)
    await db.execute("DELETE FROM inbox WHERE (connector, account, event_id) = (?, ?, ?)", _key(event))


async def waiting(db: aiosqlite.Connection) -> int:
    """How many events wait to be done."""
    return await value(db, "SELECT count(*) FROM inbox WHERE payload <> ''")


async def is_open(db: aiosqlite.Connection, event: Event) -> bool:
    """Whether an event still waits to be done: its words are here."""
    rows = await fetch(
        db,
        "SELECT 1 FROM inbox WHERE (connector, account, event_id) = (?, ?, ?) AND payload <> ''",
        _key(event),
    )
    return first(rows) is not None


async def waited(db: aiosqlite.Connection, event: Event, turn: str, now: float) -> None:
    """Remember how long an open event has waited for its answer; our clock may have been set meanwhile."""
    await db.execute(
        "INSERT INTO waits SELECT ?, max(0.0, ? - received_at) FROM inbox"
        " WHERE (connector, account, event_id) = (?, ?, ?)",
        (turn, now, *_key(event)),
    )


async def unfinished(db: aiosqlite.Connection) -> list[tuple[Event, float]]:
    """`(event, received at)` of all that was accepted but not done when the process ended."""
    rows = await fetch(
        db, "SELECT payload, received_at FROM inbox WHERE payload <> '' ORDER BY received_at, event_id"
    )
    return [(codec.load_event(payload), at) for payload, at in rows]


async def expire(db: aiosqlite.Connection, before: float) -> None:
    """Forget what is done and older than any platform's redelivery; receipts quote answers."""
    await db.execute("DELETE FROM inbox WHERE payload = '' AND received_at < ?", (before,))


async def forget(db: aiosqlite.Connection, persons: Sequence[str]) -> None:
    """Part of forgetting: what these persons (`connector:id`) said and what waits for an answer."""
    await db.execute(
        "UPDATE inbox SET payload = '' WHERE payload <> '' AND json_extract(payload, '$.user.connector')"
        " || ':' || json_extract(payload, '$.user.id') IN (SELECT value FROM json_each(?))",
        (codec.dump_json(persons),),
    )


async def forget_receipts(db: aiosqlite.Connection) -> None:
    """Part of forgetting: what receipts quote, whoever got them."""
    await db.execute("UPDATE inbox SET receipt = json_remove(json_set(receipt, '$.x', ''), '$.r')")


async def forget_told(db: aiosqlite.Connection, person: str) -> None:
    """As `forget_receipts`, of those that name a person: what a stranger was told."""
    await db.execute(
        "UPDATE inbox SET receipt = json_remove(json_set(receipt, '$.x', ''), '$.r')"
        " WHERE instr(receipt, json_quote(?)) > 0",
        (person,),
    )


async def cursor(db: aiosqlite.Connection, connector: str) -> str | None:
    """The connector's last committed cursor."""
    return await value(db, "SELECT cursor FROM cursors WHERE connector = ?", (connector,))


async def set_cursor(db: aiosqlite.Connection, connector: str, value: str) -> None:
    """Move the cursor, in the transaction of the events that it stands for."""
    await db.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?)", (connector, value))


async def kept(db: aiosqlite.Connection, connector: str) -> Row | None:
    """How much a connector keeps: it says something else once that has deleted any of it."""
    query = "SELECT count(*), total(length(key) + length(value)) FROM connector_values WHERE connector = ?"
    return first(await fetch(db, query, (connector,)))


async def get_value(db: aiosqlite.Connection, connector: str, key: str) -> str | None:
    """A connector's own small value."""
    row = first(
        await fetch(
            db, "SELECT value FROM connector_values WHERE (connector, key) = (?, ?)", (connector, key)
        )
    )
    return row[0] if row else None


async def set_value(db: aiosqlite.Connection, connector: str, key: str, value: str) -> None:
    """Keep a connector's own small value; an empty one is deleted, for its key may name a person."""
    if not value:
        await db.execute("DELETE FROM connector_values WHERE (connector, key) = (?, ?)", (connector, key))
        return
    await db.execute("INSERT OR REPLACE INTO connector_values VALUES (?, ?, ?)", (connector, key, value))


def _key(event: Event) -> tuple[str, str, str]:
    return (event.user.connector, event.user.account, event.event_id)
