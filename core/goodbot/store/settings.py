# SPDX-License-Identifier: Apache-2.0
"""Shares, switches, who was told what, and the audit trail."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.store import codec
from goodbot.store.query import fetch, first, value

STRANGERS = 10_000
"""So many keys of strangers at least are remembered, and soon no more than twice as many."""
BEFORE = "before "
"""How the notes in `told` begin of strangers who were told before the newest."""
_STRANGER = (
    "(instr(person, ' ') = 0 AND instr(person, ':') > 1 OR substr(person, 1, 5) = 'rate '"
    " OR substr(person, 1, 7) = 'owners ')"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """One administrative act. `at` is seconds since the epoch."""

    seq: int
    at: float
    actor: str
    action: str
    detail: str
    hash: str


async def set_share(db: aiosqlite.Connection, person: str, on: bool, now: float, *, own: bool = True) -> None:
    """Whether a person's private chats may train what others talk to.

    Without `own` it is the word of the owner whom this account is one person with: its own word is kept
    apart, and is the one that holds once it is a person of its own again (`speak_for_itself`).
    """
    if own:
        await _own_word(db, person)
    elif not await _own_notes(db, person):
        word = "off" if await withholds(db, [person]) else "on" if await shares(db, person) else "no"
        await db.execute("INSERT INTO told VALUES (?)", (own_note(person, word),))
    said, other = ("shares", "withheld") if on else ("withheld", "shares")
    await db.execute(f"INSERT OR IGNORE INTO {said} VALUES (?, ?)", (person, now))  # noqa: S608
    await db.execute(f"DELETE FROM {other} WHERE person = ?", (person,))  # noqa: S608


async def speak_for_itself(db: aiosqlite.Connection, person: str, now: float) -> None:
    """What others have said for this account ends; it goes on to teach only by its own word."""
    word = await _own_word(db, person)
    if word in ("on", "off"):
        await set_share(db, person, word == "on", now)
    elif word:
        await db.execute("DELETE FROM shares WHERE person = ?", (person,))


def own_note(person: str, word: str) -> str:
    """The note in `told` that keeps an account's own word on `share`: `on`, `off`, or `no` word."""
    return f"said {word} {person}"


async def _own_word(db: aiosqlite.Connection, person: str) -> str:
    """Take the note of what an account had said itself: `on`, `off`, `no` word; empty if none is there."""
    notes = await _own_notes(db, person)
    await db.executemany("DELETE FROM told WHERE person = ?", [(note,) for note in notes])
    return notes[0].split()[1] if notes else ""


async def _own_notes(db: aiosqlite.Connection, person: str) -> list[str]:
    notes = [own_note(person, word) for word in ("on", "off", "no")]
    query = "SELECT person FROM told WHERE person IN (?, ?, ?)"
    return [row[0] for row in await fetch(db, query, notes)]


async def shares(db: aiosqlite.Connection, person: str) -> bool:
    """Whether `share on` was said for this account."""
    rows = await fetch(db, "SELECT 1 FROM shares WHERE person = ?", (person,))
    return first(rows) is not None


async def withholds(db: aiosqlite.Connection, persons: Sequence[str]) -> bool:
    """Whether one of these has said `share off`."""
    marks = ", ".join("?" * len(persons))
    query = f"SELECT 1 FROM withheld WHERE person IN ({marks}) LIMIT 1"  # noqa: S608
    return first(await fetch(db, query, tuple(persons))) is not None


async def tell_once(db: aiosqlite.Connection, person: str) -> bool:
    """True the first time that it is asked about a person."""
    rows = await db.execute("INSERT OR IGNORE INTO told VALUES (?)", (person,))
    return rows.rowcount > 0


async def tell_stranger(db: aiosqlite.Connection, key: str) -> bool:
    """As `tell_once`, of somebody who may not do what they tried: strangers are without number.

    The newest `STRANGERS` keys are remembered; see `forget_strangers`.
    """
    rows = await db.execute(
        "INSERT OR IGNORE INTO told SELECT :key WHERE NOT EXISTS"
        " (SELECT 1 FROM told WHERE person = :before || :key)",
        {"key": key, "before": BEFORE},
    )
    return rows.rowcount > 0


async def forget_strangers(db: aiosqlite.Connection) -> None:
    """Where more than `STRANGERS` were told something, let go of those who were told before them.

    A table without times knows an order by two piles: the full one takes the place of the one before.
    Whom an owner has refused stays: they would ask again.
    """
    if await value(db, f"SELECT count(*) FROM told WHERE {_STRANGER}", default=0) <= STRANGERS:  # noqa: S608
        return
    refused = "SELECT 1 FROM told n WHERE n.person = 'refused ' || substr(told.person, :start)"
    await db.execute(
        "DELETE FROM told WHERE substr(person, 1, :length) = :before"  # noqa: S608
        f" AND NOT EXISTS ({refused})",
        {"length": len(BEFORE), "before": BEFORE, "start": len(BEFORE) + 1},
    )
    await db.execute(
        f"UPDATE told SET person = :before || person WHERE {_STRANGER}"  # noqa: S608
        f" AND NOT EXISTS ({refused})",
        {"before": BEFORE, "start": 1},
    )


async def switch(db: aiosqlite.Connection, name: str) -> str:
    """A switch that outlives restarts; empty when it is not set."""
    return await value(db, "SELECT value FROM switches WHERE name = ?", (name,), default="")


async def rests(db: aiosqlite.Connection) -> bool:
    """Whether training is paused, or goodbot is off."""
    return bool(await switch(db, "paused") or await switch(db, "off"))


async def set_switch(db: aiosqlite.Connection, name: str, value: str) -> None:
    """Set a switch; an empty value clears it."""
    if value:
        await db.execute("INSERT OR REPLACE INTO switches VALUES (?, ?)", (name, value))
    else:
        await db.execute("DELETE FROM switches WHERE name = ?", (name,))


async def record(db: aiosqlite.Connection, actor: str, action: str, detail: object, now: float) -> None:
    """Append to the audit trail; the hash covers this row and the hash before it."""
    row = first(await fetch(db, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1"))
    text = codec.dump_json(detail)
    digest = chain(row[0] if row else "", now, actor, action, text)
    await db.execute(
        "INSERT INTO audit (at, actor, action, detail, hash) VALUES (?, ?, ?, ?, ?)",
        (now, actor, action, text, digest),
    )


async def recorded_since(db: aiosqlite.Connection, actor: str, action: str, since: float) -> bool:
    """Whether the trail has such a row already."""
    rows = await fetch(
        db, "SELECT 1 FROM audit WHERE (actor, action) = (?, ?) AND at > ? LIMIT 1", (actor, action, since)
    )
    return first(rows) is not None


async def alias(db: aiosqlite.Connection, person: str) -> str:
    """What the trail calls somebody who is no owner; with the row here gone, nobody knows who it was."""
    await db.execute(
        "INSERT OR IGNORE INTO aliases VALUES (?, ?)", (person, f"person-{secrets.token_hex(6)}")
    )
    row = first(await fetch(db, "SELECT alias FROM aliases WHERE person = ?", (person,)))
    assert row is not None  # noqa: S101  it was inserted above
    return row[0]


async def audit(db: aiosqlite.Connection) -> tuple[list[AuditEntry], bool]:
    """The whole trail, oldest first, and whether its chain of hashes is unbroken."""
    rows = await fetch(db, "SELECT seq, at, actor, action, detail, hash FROM audit ORDER BY seq")
    entries = [AuditEntry(seq=r[0], at=r[1], actor=r[2], action=r[3], detail=r[4], hash=r[5]) for r in rows]
    previous, whole = "", True
    for number, entry in enumerate(entries, 1):  # numbers have no gap: see `trail.first_changed`
        whole &= entry.seq == number and entry.hash == chain(
            previous, entry.at, entry.actor, entry.action, entry.detail
        )
        previous = entry.hash
    return entries, whole


def chain(previous: str, at: float, actor: str, action: str, detail: str) -> str:
    """The hash of an entry of the audit trail, over the one of the entry before it."""
    line = codec.dump_json([previous, at, actor, action, detail])
    return hashlib.sha256(line.encode()).hexdigest()
