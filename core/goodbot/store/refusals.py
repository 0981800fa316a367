# SPDX-License-Identifier: Apache-2.0
"""What was refused, and of which nothing else is kept: told again, it is not done with rights of later.

Platforms tell things again after an outage or a restart. By order of events, so by no clock: what comes
first decides. A crowd is to cost little space: a row has one size, whoever writes, and names nobody. Ids of
platforms can be guessed from plain hashes, so these are MACs: their key is beside the database, in no copy
of it (`goodbot.base.sealed`).
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

import aiosqlite

from goodbot.api.events import Event
from goodbot.base import sealed
from goodbot.store.query import fetch, first

logger = logging.getLogger(__name__)

MOST = 20_000
"""The newest; no platform tells so much again."""
_BYTES = 16
_FIND, _MAKE, _MUST = range(3)
_OF_A_MOMENT = (errno.EMFILE, errno.ENFILE, errno.EIO)


def function(home: Path) -> Callable[[bytes, int], bytes]:
    """SQL `refusal_mac(said, how)`, by the key of a state directory, which it may make to `_MAKE` one.

    Where there is none, or none that can be read, it is empty, as no row's is. It fails where it `_MUST` be
    read, and where that is for a moment alone: else whoever was refused need only bring such a moment about.
    """

    def refusal_mac(said: bytes, how: int) -> bytes:
        make = how == _MAKE
        try:
            mac = (sealed.seal if make else sealed.known)(home, "refused", said)
        except OSError as error:  # SQLite would fail with it, and so would what everybody else sends
            if how == _MUST or error.errno in _OF_A_MOMENT:
                raise
            logger.warning("what was refused is not known again: %s: %s", home / sealed.KEY, error.strerror)
            return secrets.token_bytes(_BYTES) if make else b""
        return bytes.fromhex(mac)[:_BYTES]

    return refusal_mac


async def add(db: aiosqlite.Connection, event: Event, now: float) -> None:
    """This was refused."""
    await db.execute(
        "INSERT OR IGNORE INTO refused (event, person, at) VALUES (refusal_mac(?, ?), refusal_mac(?, ?), ?)",
        (_key(event), _MAKE, _joined(f"{event.user.connector}:{event.user.id}"), _MAKE, now),
    )
    await db.execute("DELETE FROM refused WHERE seq <= (SELECT max(seq) FROM refused) - ?", (MOST,))


async def knows(db: aiosqlite.Connection, event: Event) -> bool:
    """Whether it was refused when it first came."""
    query = "SELECT 1 FROM refused WHERE event = refusal_mac(?, ?)"
    return first(await fetch(db, query, (_key(event), _FIND))) is not None


async def forget(db: aiosqlite.Connection, persons: Iterable[str]) -> None:
    """Part of forgetting: what these persons (`connector:id`) were refused.

    Fails where the key cannot be read: their rows cannot be told from others'.
    """
    query = "DELETE FROM refused WHERE person = refusal_mac(?, ?)"
    await db.executemany(query, [(_joined(who), _MUST) for who in persons])


async def expire(db: aiosqlite.Connection, before: float) -> None:
    """Drop what is older than any platform's redelivery."""
    await db.execute("DELETE FROM refused WHERE at < ?", (before,))


def _key(event: Event) -> bytes:
    return _joined(event.user.connector, event.user.account, event.event_id)


def _joined(*parts: str) -> bytes:
    return "\0".join(parts).encode("utf-8", "surrogatepass")
