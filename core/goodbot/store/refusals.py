# SPDX-License-Identifier: Apache-2.0
"""What was refused, and of which nothing else is kept: told again, it is not done with rights of later.

Platforms tell things again after an outage or a restart. By order of events, so by no clock: what comes
first decides. A crowd is to cost little space: a row has one size, whoever writes, and names nobody. Ids of
platforms can be guessed from plain hashes, so these are MACs: their key is beside the database, in no copy
of it (`goodbot.base.sealed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import aiosqlite

from goodbot.api.events import Event
from goodbot.base import sealed
from goodbot.base.errors import StoreError
from goodbot.store.query import fetch, first, value

MOST = 20_000
"""The newest; no platform tells so much again."""
_WHAT = "refused"
_BYTES = 16


async def add(db: aiosqlite.Connection, event: Event, now: float) -> None:
    """This was refused."""
    home = await _home(db)
    try:
        event_key, who = (sealed.seal(home, _WHAT, said) for said in (_event(event), _person(event)))
    except OSError as error:
        raise StoreError(f"{home / sealed.KEY} cannot be read or made: {error}") from error
    await db.execute(
        "INSERT OR IGNORE INTO refused (event, person, at) VALUES (?, ?, ?)",
        (_short(event_key), _short(who), now),
    )
    await db.execute("DELETE FROM refused WHERE seq <= (SELECT max(seq) FROM refused) - ?", (MOST,))


async def knows(db: aiosqlite.Connection, event: Event) -> bool:
    """Whether it was refused when it first came."""
    key = _known(await _home(db), _event(event))
    return first(await fetch(db, "SELECT 1 FROM refused WHERE event = ?", (key,))) is not None


async def forget(db: aiosqlite.Connection, persons: Iterable[str]) -> None:
    """Part of forgetting: what these persons (`connector:id`) were refused."""
    home = await _home(db)
    await db.executemany(
        "DELETE FROM refused WHERE person = ?", [(_known(home, _joined(who)),) for who in persons]
    )


async def expire(db: aiosqlite.Connection, before: float) -> None:
    """Drop what is older than any platform's redelivery."""
    await db.execute("DELETE FROM refused WHERE at < ?", (before,))


async def _home(db: aiosqlite.Connection) -> Path:
    """The state directory that the database is in."""
    return Path(await value(db, "SELECT file FROM pragma_database_list WHERE name = 'main'")).parent


def _known(home: Path, said: bytes) -> bytes:
    """By the key that is here; empty, which no row is, where there is none. Raises StoreError."""
    try:
        return _short(sealed.known(home, _WHAT, said))
    except OSError as error:
        raise StoreError(f"{home / sealed.KEY} cannot be read: {error}") from error


def _short(mac: str) -> bytes:
    return bytes.fromhex(mac)[:_BYTES]


def _event(event: Event) -> bytes:
    return _joined(event.user.connector, event.user.account, event.event_id)


def _person(event: Event) -> bytes:
    return _joined(f"{event.user.connector}:{event.user.id}")


def _joined(*parts: str) -> bytes:
    return "\0".join(parts).encode("utf-8", "surrogatepass")
