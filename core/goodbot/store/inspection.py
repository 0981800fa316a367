# SPDX-License-Identifier: Apache-2.0
"""Looking at the database without changing a byte of it, also while a daemon writes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite

from goodbot import config
from goodbot.store import cipher, codec, soundness
from goodbot.store.commit_queue import explain
from goodbot.store.connection import connect
from goodbot.store.consent import ALWAYS
from goodbot.store.migrate import check, migrations
from goodbot.store.postgres import looking
from goodbot.store.query import fetch, first, value


@asynccontextmanager
async def look(path: Path) -> AsyncGenerator[aiosqlite.Connection]:
    """A connection that can only read. Raises StoreError, and NewerDataError for a newer schema.

    While no write-ahead log lies there, nobody writes; SQLite is told so, since it would make the
    log's files even for a reader. Where the store is on a server, to that.
    """
    if (where := config.stores.get(path.parent.absolute())) and where.url:
        async with looking.look(where.url, path) as db:
            yield db
        return
    still = "" if path.with_name(path.name + "-wal").exists() else "&immutable=1"
    try:
        db = await connect(path, f"mode=ro{still}")
        try:
            await check(db)
            yield db
        finally:
            await db.interrupt()  # a query that took too long must not keep its thread
            await db.close()
    except cipher.errors() as error:
        raise (await soundness.damage(error, path)) or explain(error, reading=True) from error


async def schema(db: aiosqlite.Connection) -> tuple[int, int]:
    """The schema's version, and the one that this goodbot knows."""
    row = first(await fetch(db, "PRAGMA user_version"))
    return int(row[0]) if row else 0, len(migrations())


async def current(db: aiosqlite.Connection) -> bool:
    """Whether this goodbot's queries fit; not so before the first start after an upgrade."""
    version, known = await schema(db)
    return version == known


async def damage(db: aiosqlite.Connection) -> str:
    """What SQLite's own check finds first, empty if nothing. It reads the whole file."""
    row = first(await fetch(db, "PRAGMA quick_check(1)"))
    found = str(row[0]) if row else "it does not answer"
    return "" if found == "ok" else found


async def size(db: aiosqlite.Connection, path: Path) -> int:
    """Bytes of the database."""
    if path.exists():
        return path.stat().st_size
    return int(await value(db, "SELECT pg_database_size(current_database())"))


async def sharers(db: aiosqlite.Connection, owners: Sequence[str]) -> list[str]:
    """Whose private chats may be trained on, as `connector:id`; `owners` are those of the config."""
    rows = await fetch(db, f"{ALWAYS} ORDER BY person", {"owners": codec.dump_json(owners)})
    return [row[0] for row in rows]


async def linked(db: aiosqlite.Connection) -> dict[str, str]:
    """Account → the person it belongs to, both as they are stored, of all accounts that were linked."""
    return {str(one): str(key) for one, key in await fetch(db, "SELECT person, identity FROM links")}


async def forgotten_since(db: aiosqlite.Connection, moment: float) -> bool:
    """Whether somebody was forgotten after it (seconds since the epoch)."""
    query = "SELECT 1 FROM audit WHERE action = 'forget' AND at > ? LIMIT 1"
    return bool(await fetch(db, query, (moment,)))


async def forgettings(db: aiosqlite.Connection) -> int:
    """How often somebody was forgotten: another number later says that somebody was meanwhile."""
    return (await fetch(db, "SELECT count(*) FROM audit WHERE action = 'forget'"))[0][0]


async def last_seen(db: aiosqlite.Connection) -> float:
    """What the clock said when the last answer or rating was stored; 0 if none has been.

    Of the last one, not the latest: that may be from before the clock was set back.
    """
    rows = await fetch(
        db,
        "SELECT max(coalesce((SELECT received_at FROM events ORDER BY seq DESC LIMIT 1), 0),"
        " coalesce((SELECT created_at FROM turns ORDER BY seq DESC LIMIT 1), 0))",
    )
    return float(rows[0][0])


async def newest(db: aiosqlite.Connection) -> float:
    """When the last rating or message came, by the clock of then; 0 if none has."""
    rows = await fetch(
        db,
        "SELECT max(coalesce((SELECT max(received_at) FROM events), 0),"
        " coalesce((SELECT max(received_at) FROM inbox), 0))",
    )
    row = first(rows)
    return float(row[0]) if row else 0.0
