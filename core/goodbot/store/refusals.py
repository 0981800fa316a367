# SPDX-License-Identifier: Apache-2.0
"""What was refused, and of which nothing else is kept: told again, it is not done with rights of later.

Platforms tell things again after an outage or a restart. By order of events, so by no clock: what comes
first decides. A crowd is to cost little space: a row has one size, whoever writes, and names nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import aiosqlite

from goodbot.api.events import Event
from goodbot.store.query import fetch, first

MOST = 20_000
"""The newest; no platform tells so much again."""


async def add(db: aiosqlite.Connection, event: Event, now: float) -> None:
    """This was refused."""
    who = f"{event.user.connector}:{event.user.id}"
    await db.execute(
        "INSERT OR IGNORE INTO refused (event, person, at) VALUES (?, ?, ?)", (_key(event), _hash(who), now)
    )
    await db.execute("DELETE FROM refused WHERE seq <= (SELECT max(seq) FROM refused) - ?", (MOST,))


async def knows(db: aiosqlite.Connection, event: Event) -> bool:
    """Whether it was refused when it first came."""
    return first(await fetch(db, "SELECT 1 FROM refused WHERE event = ?", (_key(event),))) is not None


async def forget(db: aiosqlite.Connection, persons: Iterable[str]) -> None:
    """Part of forgetting: what these persons (`connector:id`) were refused."""
    await db.executemany("DELETE FROM refused WHERE person = ?", [(_hash(who),) for who in persons])


async def expire(db: aiosqlite.Connection, before: float) -> None:
    """Drop what is older than any platform's redelivery."""
    await db.execute("DELETE FROM refused WHERE at < ?", (before,))


def _key(event: Event) -> bytes:
    return _hash(event.user.connector, event.user.account, event.event_id)


def _hash(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]
