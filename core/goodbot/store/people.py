# SPDX-License-Identifier: Apache-2.0
"""Grants that were given by pairing or a command, and the accounts that are one person's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.store import codes, joining, settings
from goodbot.store.consent import OWN
from goodbot.store.query import fetch, value

ROLES = ("owner", "rater", "talker")
PAIRING = "pairing"
"""`given_by` of a grant that its holder got with a pairing code."""


IDENTITY = "coalesce((SELECT identity FROM links WHERE person = :person), :person)"
"""In a query: the key that the one vote of `:person` is kept under; `identity` asks for it alone."""
IDENTITY_OF = "coalesce((SELECT k.identity FROM links k WHERE k.person = {0}), {0})"
"""The same in an expression, of the account in a column."""
ACCOUNTS = f"SELECT {IDENTITY} UNION ALL SELECT person FROM links WHERE identity = {IDENTITY}"  # noqa: S608
"""A query: all accounts of that person, some of them twice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantRow:
    """One grant. `person` is `connector:id`; `since` seconds since the epoch."""

    person: str
    role: str
    given_by: str
    since: float


async def grants(db: aiosqlite.Connection) -> list[GrantRow]:
    """All of them, owners first."""
    rows = await fetch(db, "SELECT person, role, given_by, since FROM grants")
    found = [GrantRow(person=r[0], role=r[1], given_by=r[2], since=r[3]) for r in rows]
    return sorted(found, key=lambda grant: (ROLES.index(grant.role), grant.person))


async def grant(db: aiosqlite.Connection, person: str, role: str, by: str, now: float) -> None:
    """Give a person a role instead of the one that they had by a grant."""
    await db.execute("INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?)", (person, role, by, now))
    await joining.decided(db, person)


async def revoke(db: aiosqlite.Connection, person: str) -> bool:
    """Take a person's grant and their open codes away; False when they had no grant."""
    await codes.kill_all_of(db, person)
    rows = await db.execute("DELETE FROM grants WHERE person = ?", (person,))
    return rows.rowcount > 0


async def identity(db: aiosqlite.Connection, person: str) -> str:
    """The key that a person's one vote is kept under: that of one of their accounts."""
    return await value(db, "SELECT identity FROM links WHERE person = ?", (person,), default=person)


async def accounts(db: aiosqlite.Connection, person: str) -> list[str]:
    """All accounts of this one's person, itself included."""
    rows = await fetch(
        db,
        "SELECT person FROM links WHERE identity = (SELECT identity FROM links WHERE person = ?)"
        " ORDER BY person",
        (person,),
    )
    return [row[0] for row in rows] or [person]


async def is_own(db: aiosqlite.Connection, person: str) -> bool:
    """Whether it was said at the machine that an account is its owner's own."""
    return bool(await fetch(db, "SELECT 1 FROM told WHERE person = ?", (f"{OWN}{person}",)))


async def link(db: aiosqlite.Connection, first_: str, second: str, now: float) -> list[str]:
    """Two accounts are one person from now on; returns all accounts of that person."""
    together = sorted({*await accounts(db, first_), *await accounts(db, second)})
    await _identify(db, together, await identity(db, first_), now)
    return together


async def unlink(db: aiosqlite.Connection, person: str, now: float, *, owners: Collection[str]) -> list[str]:
    """An account is its own person again; returns all that were together, empty if none were.

    What was said for it at the machine ends with that, also for others whom none of `owners`, the
    accounts of the machine's owner, is left with: linked again by a code, they are asked like anybody.
    """
    together = await accounts(db, person)
    rest = [other for other in together if other != person]
    for apart in (person, *(() if {*rest} & {*owners} else rest)):
        await db.execute("DELETE FROM told WHERE person = ?", (f"{OWN}{apart}",))
        await settings.speak_for_itself(db, apart, now)
    if not rest:
        return []
    key = await identity(db, person)
    await db.execute("DELETE FROM links WHERE identity = ?", (key,))
    if len(rest) > 1:
        await _identify(db, rest, rest[0] if key == person else key, now)
    return together


async def _identify(db: aiosqlite.Connection, persons: Sequence[str], key: str, now: float) -> None:
    await db.executemany(
        "INSERT INTO links VALUES (?, ?, ?) ON CONFLICT (person) DO UPDATE SET identity = excluded.identity",
        [(person, key, now) for person in persons],
    )
