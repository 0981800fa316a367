"""Numbered SQL migrations, one transaction each; `user_version` says which have run."""

from __future__ import annotations

from importlib.resources import files

import aiosqlite

from goodbot.errors import NewerDataError, StoreError
from goodbot.store.query import fetch, first

APPLICATION_ID = 0x60_0D_B0_07
"""In the file's header, so that another program's database is never taken for ours."""


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
    known = len(migrations())
    application = await _pragma(db, "application_id")
    version = await _pragma(db, "user_version")
    if application not in (0, APPLICATION_ID) or (application == 0 and await _has_tables(db)):
        raise StoreError("the file is not a goodbot database: choose another state directory")
    if version > known:
        raise NewerDataError(
            f"the data is from a newer goodbot (schema {version}, this one knows {known}): "
            "install that version again"
        )


async def migrate(db: aiosqlite.Connection) -> None:
    """Bring a database that `check` has passed to this version."""
    version = await _pragma(db, "user_version")
    for number, sql in migrations()[version:]:
        # executescript commits by itself, so the transaction is part of the script.
        await db.executescript(
            f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {number};\nCOMMIT;"
        )


async def _pragma(db: aiosqlite.Connection, name: str) -> int:
    row = first(await fetch(db, f"PRAGMA {name}"))
    return int(row[0]) if row else 0


async def _has_tables(db: aiosqlite.Connection) -> bool:
    rows = await fetch(db, "SELECT 1 FROM sqlite_schema LIMIT 1")
    return first(rows) is not None
