# SPDX-License-Identifier: Apache-2.0
"""Shared channels: where the bot is on, who switched it on, and whether the notice was posted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import ChannelRef
from goodbot.store.query import fetch, first, value

CONFIG = "config"
"""`enabled_by` of a channel that the config file names."""
_NOTICE_LASTS = 30 * 86400.0
"""Seconds in which a channel that is switched off and on again needs no second notice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRow:
    """One channel that is on. Times are seconds since the epoch; no account: not seen running yet."""

    connector: str
    account: str
    channel: str
    enabled_by: str
    enabled_at: float
    noticed_at: float | None


async def enable(db: aiosqlite.Connection, channel: ChannelRef, by: str, now: float) -> bool:
    """Switch a channel on; False if it was on already."""
    rows = await db.execute(
        "INSERT INTO channels (connector, account, channel, enabled_by, enabled_at)"
        " VALUES (:connector, :account, :channel, :by, :now)"
        " ON CONFLICT (connector, account, channel) DO UPDATE"
        " SET off_at = NULL, enabled_by = :by, enabled_at = :now,"
        " noticed_at = iif(channels.noticed_at BETWEEN :stale AND :now, channels.noticed_at, NULL)"
        " WHERE channels.off_at IS NOT NULL",
        {
            "connector": channel.connector,
            "account": channel.account,
            "channel": channel.id,
            "by": by,
            "now": now,
            "stale": now - _NOTICE_LASTS,
        },
    )
    return rows.rowcount > 0


async def disable(db: aiosqlite.Connection, channel: ChannelRef, now: float) -> bool:
    """Switch a channel off; False if it was not on."""
    return await _set(db, channel, "off_at", now)


async def _set(db: aiosqlite.Connection, channel: ChannelRef, column: str, to: float) -> bool:
    """Set a column of a channel that is on; False if it is off."""
    rows = await db.execute(
        # Also the row of a time when the account was not known: it would switch it on again.
        f"UPDATE channels SET {column} = ? WHERE connector = ? AND account IN (?, '') AND channel = ?"  # noqa: S608
        " AND off_at IS NULL",
        (to, channel.connector, channel.account, channel.id),
    )
    return rows.rowcount > 0


async def enabled(db: aiosqlite.Connection, channel: ChannelRef) -> bool:
    """Whether an owner has switched this channel on."""
    rows = await fetch(
        db,
        "SELECT 1 FROM channels WHERE connector = ? AND account IN (?, '') AND channel = ?"
        " AND off_at IS NULL",
        (channel.connector, channel.account, channel.id),
    )
    return first(rows) is not None


async def set_notes(db: aiosqlite.Connection, channel: ChannelRef, used: bool) -> bool:
    """Whether answers there follow lines (`store.notes`); False where the channel is not on."""
    return await _set(db, channel, "notes", used)


async def notes(db: aiosqlite.Connection, channel: ChannelRef, *, default: bool) -> bool:
    """Whether answers there follow lines; `default` where no owner has said it."""
    found = await value(
        db,
        "SELECT notes FROM channels WHERE connector = ? AND account IN (?, '') AND channel = ?"
        " AND notes IS NOT NULL",
        (channel.connector, channel.account, channel.id),
        default=default,
    )
    return bool(found)


async def known_account(db: aiosqlite.Connection, connector: str, channel: str) -> str:
    """The account under which a channel was met before; empty for a new one."""
    return await value(
        db,
        "SELECT account FROM channels WHERE (connector, channel) = (?, ?) ORDER BY account DESC",
        (connector, channel),
        default="",
    )


async def everywhere(db: aiosqlite.Connection) -> list[ChannelRow]:
    """All channels that are on."""
    rows = await fetch(
        db,
        "SELECT connector, account, channel, enabled_by, enabled_at, noticed_at FROM channels"
        " WHERE off_at IS NULL ORDER BY connector, enabled_at, channel",
    )
    return [
        ChannelRow(
            connector=r[0], account=r[1], channel=r[2], enabled_by=r[3], enabled_at=r[4], noticed_at=r[5]
        )
        for r in rows
    ]


async def settle(
    db: aiosqlite.Connection, connector: str, account: str, configured: Sequence[ChannelRef], now: float
) -> None:
    """A connector runs, so its account is known: bring its rows and the config together."""
    await db.execute(
        "UPDATE channels SET account = :account WHERE connector = :connector AND account = ''"
        " AND NOT EXISTS (SELECT 1 FROM channels c WHERE"
        " (c.connector, c.account, c.channel) = (:connector, :account, channels.channel))",
        {"account": account, "connector": connector},
    )
    for channel in configured:
        await enable(db, channel, CONFIG, now)
    ids = {channel.id for channel in configured}
    for row in await everywhere(db):
        if row.connector == connector and row.enabled_by == CONFIG and row.channel not in ids:
            await db.execute(
                "UPDATE channels SET off_at = ? WHERE (connector, account, channel) = (?, ?, ?)",
                (now, connector, row.account, row.channel),
            )


async def set_noticed(db: aiosqlite.Connection, channel: ChannelRow, now: float) -> None:
    """The platform has the channel's notice."""
    await db.execute(
        "UPDATE channels SET noticed_at = ? WHERE (connector, account, channel) = (?, ?, ?)",
        (now, channel.connector, channel.account, channel.channel),
    )
