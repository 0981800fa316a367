# SPDX-License-Identifier: Apache-2.0
"""Numbered SQL migrations, one transaction each; `user_version` says which have run.

A verified copy of the database is made first, beside it. `back` undoes those of this release.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.resources import files
from pathlib import Path

import aiosqlite

from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.config.layout import APPLICATION_ID
from goodbot.store import backup
from goodbot.store.query import fetch, first

logger = logging.getLogger(__name__)

__all__ = ["APPLICATION_ID", "check", "migrate", "migrations", "schema", "step"]


def migrations() -> list[tuple[int, str]]:
    """`(number, SQL)` in order; the numbers run from 1 without a gap."""
    found = sorted(
        (int(entry.name[:4]), entry.read_text(encoding="utf-8"))
        for entry in files("goodbot.store").joinpath("migrations").iterdir()
        if entry.name.endswith(".sql")
    )
    assert [number for number, _ in found] == list(range(1, len(found) + 1))  # noqa: S101
    return found


async def check(db: aiosqlite.Connection) -> None:
    """Refuse what is not ours to open; reads only. Raises StoreError or NewerDataError."""
    application = await _pragma(db, "application_id")
    if application not in (0, APPLICATION_ID) or (application == 0 and await _has_tables(db)):
        raise StoreError(Worded("the file is not a goodbot database: choose another state directory"))
    backup.require_schema(await schema(db), len(migrations()))


async def migrate(db: aiosqlite.Connection, path: Path) -> None:
    """Bring a database that `check` has passed to this version.

    Raises StoreError; then it is as it was, or at a step in between that went well as a whole.
    """
    version = await schema(db)
    steps = migrations()[version:]
    if version and steps:
        copy = await asyncio.to_thread(backup.before_change, path, version)
        logger.info("the data is upgraded from schema %d; a copy of it is %s", version, copy.path)
    for number, sql in steps:
        await step(db, await _still_to_do(db, sql), number)


async def _still_to_do(db: aiosqlite.Connection, sql: str) -> str:
    """A migration without the columns that are there: for some hours they came with the one before."""
    left: list[str] = []
    for line in sql.splitlines():
        match line.split():
            case ["ALTER", "TABLE", table, "ADD", "COLUMN", column, *_]:
                query = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
                there = await fetch(db, query, (table, column))
            case _:
                there = []
        left += [] if there else [line]
    return "\n".join(left)


async def step(db: aiosqlite.Connection, sql: str, version: int) -> None:
    """Run one script that leads to schema `version`, in one transaction."""
    try:
        # executescript would commit before it runs, not after: the transaction is in the script.
        await db.executescript(
            f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {version};"
        )
        if await fetch(db, "PRAGMA foreign_key_check"):
            lost = "schema {version} cannot hold these data: rows point to missing rows"
            raise StoreError(Worded(lost, version=version))
        await db.commit()
    finally:
        if db.in_transaction:
            await db.rollback()


async def schema(db: aiosqlite.Connection) -> int:
    """The number of the last migration that has run; 0 for an empty file."""
    return await _pragma(db, "user_version")


async def _pragma(db: aiosqlite.Connection, name: str) -> int:
    row = first(await fetch(db, f"PRAGMA {name}"))
    return int(row[0]) if row else 0


async def _has_tables(db: aiosqlite.Connection) -> bool:
    rows = await fetch(db, "SELECT 1 FROM sqlite_schema LIMIT 1")
    return first(rows) is not None
