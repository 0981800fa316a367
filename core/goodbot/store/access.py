"""Channels, shares, switches and the audit trail."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import aiosqlite

from goodbot.events import ChannelRef
from goodbot.store import codec
from goodbot.store.query import fetch, first


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """One administrative act. `at` is seconds since the epoch."""

    seq: int
    at: float
    actor: str
    action: str
    detail: str
    hash: str


async def enable_channel(
    db: aiosqlite.Connection, channel: ChannelRef, by: str, now: float
) -> bool:
    """Switch a channel on; False if it was on already."""
    rows = await db.execute(
        "INSERT OR IGNORE INTO channels (connector, account, channel, enabled_by, enabled_at)"
        " VALUES (?, ?, ?, ?, ?)",
        (channel.connector, channel.account, channel.id, by, now),
    )
    return rows.rowcount > 0


async def disable_channel(db: aiosqlite.Connection, channel: ChannelRef) -> bool:
    """Switch a channel off; False if it was not on."""
    rows = await db.execute(
        "DELETE FROM channels WHERE (connector, account, channel) = (?, ?, ?)",
        (channel.connector, channel.account, channel.id),
    )
    return rows.rowcount > 0


async def channel_enabled(db: aiosqlite.Connection, channel: ChannelRef) -> bool:
    """Whether an owner has switched this channel on."""
    rows = await fetch(
        db,
        "SELECT 1 FROM channels WHERE (connector, account, channel) = (?, ?, ?)",
        (channel.connector, channel.account, channel.id),
    )
    return first(rows) is not None


async def set_share(db: aiosqlite.Connection, person: str, on: bool, now: float) -> None:
    """Whether a person's private chats may train what others talk to."""
    if on:
        await db.execute("INSERT OR IGNORE INTO shares VALUES (?, ?)", (person, now))
    else:
        await db.execute("DELETE FROM shares WHERE person = ?", (person,))


async def tell_once(db: aiosqlite.Connection, person: str) -> bool:
    """True the first time that it is asked about a person."""
    rows = await db.execute("INSERT OR IGNORE INTO told VALUES (?)", (person,))
    return rows.rowcount > 0


async def switch(db: aiosqlite.Connection, name: str) -> str:
    """A switch that outlives restarts; empty when it is not set."""
    row = first(await fetch(db, "SELECT value FROM switches WHERE name = ?", (name,)))
    return row[0] if row else ""


async def set_switch(db: aiosqlite.Connection, name: str, value: str) -> None:
    """Set a switch; an empty value clears it."""
    if value:
        await db.execute("INSERT OR REPLACE INTO switches VALUES (?, ?)", (name, value))
    else:
        await db.execute("DELETE FROM switches WHERE name = ?", (name,))


async def record(
    db: aiosqlite.Connection, actor: str, action: str, detail: object, now: float
) -> None:
    """Append to the audit trail; the hash covers this row and the hash before it."""
    row = first(await fetch(db, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1"))
    text = codec.dump_json(detail)
    digest = _chain(row[0] if row else "", now, actor, action, text)
    await db.execute(
        "INSERT INTO audit (at, actor, action, detail, hash) VALUES (?, ?, ?, ?, ?)",
        (now, actor, action, text, digest),
    )


async def audit(db: aiosqlite.Connection) -> tuple[list[AuditEntry], bool]:
    """The whole trail, oldest first, and whether its chain of hashes is unbroken."""
    rows = await fetch(db, "SELECT seq, at, actor, action, detail, hash FROM audit ORDER BY seq")
    entries = [
        AuditEntry(seq=r[0], at=r[1], actor=r[2], action=r[3], detail=r[4], hash=r[5]) for r in rows
    ]
    previous, whole = "", True
    for entry in entries:
        whole &= entry.hash == _chain(previous, entry.at, entry.actor, entry.action, entry.detail)
        previous = entry.hash
    return entries, whole


def _chain(previous: str, at: float, actor: str, action: str, detail: str) -> str:
    line = codec.dump_json([previous, at, actor, action, detail])
    return hashlib.sha256(line.encode()).hexdigest()
