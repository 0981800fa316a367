# SPDX-License-Identifier: Apache-2.0
"""One-time codes: only their hashes, how often somebody guessed wrong, and until when they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiosqlite

from goodbot.store.query import fetch, first

_LONGEST = 7200.0
"""Seconds; none holds for so long: one that would was made before our clock was set back."""
_HOLDS = f"expires_at > :now AND expires_at <= :now + {_LONGEST}"
"""SQL: it has not expired."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OneTimeCode:
    """One code that was made. `subject` is a connector (to pair) or a person (to link, to log in)."""

    subject: str
    hash: str
    role: str
    expires_at: float
    failures: int


async def put(
    db: aiosqlite.Connection, purpose: str, subject: str, digest: str, expires_at: float, role: str
) -> None:
    """Remember a fresh code; the one before it for the same subject is dead."""
    await db.execute(
        "INSERT OR REPLACE INTO codes (purpose, subject, hash, role, expires_at) VALUES (?, ?, ?, ?, ?)",
        (purpose, subject, digest, role, expires_at),
    )


async def get(db: aiosqlite.Connection, purpose: str, subject: str, now: float) -> OneTimeCode | None:
    """The code of a subject that has not expired, locked or not."""
    rows = await fetch(
        db,
        "SELECT subject, hash, role, expires_at, failures FROM codes"  # noqa: S608
        f" WHERE (purpose, subject) = (:purpose, :subject) AND {_HOLDS}",
        {"purpose": purpose, "subject": subject, "now": now},
    )
    row = first(rows)
    return _code(row) if row else None


async def unexpired(db: aiosqlite.Connection, purpose: str, now: float) -> list[OneTimeCode]:
    """All codes of a purpose that have not expired, locked or not."""
    rows = await fetch(
        db,
        "SELECT subject, hash, role, expires_at, failures FROM codes"  # noqa: S608
        f" WHERE purpose = :purpose AND {_HOLDS} ORDER BY subject",
        {"purpose": purpose, "now": now},
    )
    return [_code(row) for row in rows]


async def fail(db: aiosqlite.Connection, purpose: str, subject: str) -> int:
    """Count a wrong guess; returns how many there are now, 0 without such a code."""
    rows = await fetch(
        db,
        "UPDATE codes SET failures = failures + 1 WHERE (purpose, subject) = (?, ?) RETURNING failures",
        (purpose, subject),
    )
    (failures,) = first(rows) or (0,)
    return failures


async def kill(db: aiosqlite.Connection, purpose: str, subject: str) -> None:
    """The code is used up."""
    await db.execute("DELETE FROM codes WHERE (purpose, subject) = (?, ?)", (purpose, subject))


async def kill_all_of(db: aiosqlite.Connection, person: str) -> None:
    """No code that a person has made holds any more."""
    await db.execute("DELETE FROM codes WHERE purpose <> 'pair' AND subject = ?", (person,))


async def kill_all_for(db: aiosqlite.Connection, purpose: str) -> None:
    """No code for this purpose holds any more."""
    await db.execute("DELETE FROM codes WHERE purpose = ?", (purpose,))


async def expire(db: aiosqlite.Connection, now: float) -> None:
    """Drop what has expired."""
    await db.execute(f"DELETE FROM codes WHERE NOT ({_HOLDS})", {"now": now})  # noqa: S608


def _code(row: tuple[Any, ...]) -> OneTimeCode:
    subject, digest, role, expires_at, failures = row
    return OneTimeCode(
        subject=str(subject),
        hash=str(digest),
        role=str(role),
        expires_at=float(expires_at),
        failures=int(failures),
    )
