# SPDX-License-Identifier: Apache-2.0
"""Who has asked to talk to the bot, until an owner decides. It gives nobody a right, and is in no backup."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.store.query import fetch, records

_KEPT = 200
"""The newest; strangers are without number."""
_SECONDS = 30 * 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinRequest:
    """One stranger's, `connector:id`. `at` is seconds since the epoch."""

    person: str
    name: str
    """What they call themselves."""
    at: float


async def ask(db: aiosqlite.Connection, person: str, name: str, now: float) -> None:
    """Somebody has asked, for the first time."""
    await db.execute(
        "INSERT OR REPLACE INTO join_requests (person, name, at) VALUES (?, ?, ?)", (person, name, now)
    )
    await db.execute(
        "DELETE FROM join_requests WHERE seq <= (SELECT max(seq) FROM join_requests) - ?", (_KEPT,)
    )


async def asked(db: aiosqlite.Connection) -> list[JoinRequest]:
    """Those that nobody has decided, the newest last."""
    rows = await fetch(db, "SELECT person, name, at FROM join_requests ORDER BY seq")
    return records(JoinRequest, rows)


async def decided(db: aiosqlite.Connection, person: str) -> None:
    """An owner has said what somebody may."""
    await db.execute("DELETE FROM join_requests WHERE person = ?", (person,))


async def expire(db: aiosqlite.Connection, now: float) -> None:
    """Drop what has waited for too long."""
    await db.execute("DELETE FROM join_requests WHERE at < ?", (now - _SECONDS,))
