"""The store: SQLite in WAL mode with `synchronous=FULL`, and the only SQL in goodbot.

One connection writes (`write`, group commit) and one, read-only, reads (`read`). The modules
beside this one hold the queries by topic: `ledger` (rating events and labels), `inbox` (messages
and commands under way, cursors), `turns`, `runs` (claims), `adapters` (versions, pointer),
`access` (channels, shares, switches, audit). Each query takes the connection it runs on, so that
several of them can share one transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from goodbot.errors import StoreError
from goodbot.store.migrate import check, migrate
from goodbot.store.query import fetch, first
from goodbot.store.writer import Operation, Writer, explain

T = TypeVar("T")

_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit that returned survives a power cut
    "foreign_keys": 1,
    "trusted_schema": 0,
}
_BUSY_SECONDS = 5.0
"""How long another program may hold the database before a write fails."""


class Store:
    """An open database. Made by `Store.open`, ended by `close`."""

    def __init__(
        self, path: Path, writing: aiosqlite.Connection, reading: aiosqlite.Connection
    ) -> None:
        self.path = path
        self._writing = writing
        self._reading = reading
        self._writer = Writer(writing)

    @classmethod
    async def open(cls, path: Path) -> Store:
        """Open or create the database at `path`, migrated to this version.

        Raises StoreError (damaged, locked, not ours, settings refused) or NewerDataError.
        """
        opened: list[aiosqlite.Connection] = []
        try:
            writing = await _connect(path)
            opened.append(writing)
            await check(writing)  # before anything is changed: it may be another program's
            await _set_pragmas(writing)
            await migrate(writing)
            reading = await _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            opened.append(reading)
            await reading.execute("PRAGMA query_only = 1")
        except BaseException as error:
            # An aiosqlite thread left open would keep the process alive for ever.
            for db in reversed(opened):
                await db.close()
            if isinstance(error, sqlite3.Error):
                raise explain(error) from error
            raise
        path.chmod(0o600)
        return cls(path, writing, reading)

    async def close(self) -> None:
        """Commit what is queued and close both connections."""
        try:
            await self._writer.close()
        finally:  # a thread left open would keep the process alive for ever
            await self._reading.close()  # first, so that the writer's close is the checkpoint
            await self._writing.close()

    async def write(self, operation: Operation[T]) -> T:
        """Run `operation` in a transaction; returns after its commit. See `Writer.write`."""
        return await self._writer.write(operation)

    async def read(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries on the last committed state."""
        try:
            return await operation(self._reading)
        except sqlite3.Error as error:
            raise explain(error) from error


async def _connect(database: Path | str, *, uri: bool = False) -> aiosqlite.Connection:
    connection = aiosqlite.connect(database, uri=uri, isolation_level=None, timeout=_BUSY_SECONDS)
    try:
        return await connection
    except BaseException:
        # Its thread still has a word for this event loop, which must not be closed by then.
        thread: Any = getattr(connection, "_thread", connection)
        await asyncio.to_thread(thread.join, _BUSY_SECONDS)
        raise


async def _set_pragmas(db: aiosqlite.Connection) -> None:
    """Set the settings that the promises hang on, and read them back: some are silently ignored."""
    for name, value in _PRAGMAS.items():
        await fetch(db, f"PRAGMA {name} = {value}")
        row = first(await fetch(db, f"PRAGMA {name}"))
        if row is None or row[0] != value:
            raise StoreError(
                f"SQLite refused {name}={value} (it says {row[0] if row else 'nothing'}): "
                "is the state directory on a network file system?"
            )
