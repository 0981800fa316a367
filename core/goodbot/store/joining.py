# SPDX-License-Identifier: Apache-2.0
"""Who has asked to talk to the bot, until an owner decides. It gives nobody a right, and is in no backup."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.store import refusals
from goodbot.store.query import fetch, records, value

_KEPT = 200
"""The newest; strangers are without number."""
_SECONDS = 30 * 86400.0
_NOTED = (
    "SELECT person FROM told WHERE (substr(person, 1, length(:who) + 6) = 'asks ' || :who || ' '"
    " OR person IN (:who, 'before ' || :who, 'rate ' || :who,"
    " 'before rate ' || :who, 'owners ' || :who, 'before owners ' || :who))"
    " AND NOT EXISTS (SELECT 1 FROM told n WHERE n.person = 'refused ' || :who)"
)
"""The notes of what a stranger was told once (`access.strangers`), and of the owners who were asked."""


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


async def remembers(db: aiosqlite.Connection, person: str) -> bool:
    """Whether there is a request of a stranger's, or a note of what they were told, for them to delete."""
    query = f"SELECT EXISTS (SELECT 1 FROM join_requests WHERE person = :who) OR EXISTS ({_NOTED})"  # noqa: S608
    return bool(await value(db, query, {"who": person}))


async def forget(db: aiosqlite.Connection, person: str) -> None:
    """Delete both, and which commands of theirs were refused. What is overwritten as it is deleted needs no
    rewriting of the database: strangers are without number, and none of them may have that done. That an
    owner has refused them stays."""
    await db.execute("DELETE FROM join_requests WHERE person = ?", (person,))
    await db.execute(f"DELETE FROM told WHERE person IN (SELECT person FROM ({_NOTED}))", {"who": person})  # noqa: S608
    await refusals.forget(db, [person])


async def expire(db: aiosqlite.Connection, now: float) -> None:
    """Drop what has waited for too long."""
    await db.execute("DELETE FROM join_requests WHERE at < ?", (now - _SECONDS,))
