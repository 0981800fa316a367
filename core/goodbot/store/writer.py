"""Group commit: many writes, one `synchronous=FULL` transaction, one fsync.

Each operation runs in its own savepoint, so one that fails undoes only itself. `write` returns
after the commit, which is what lets a connector acknowledge. While one batch is being synced the
next one gathers, so a lone writer waits for nobody and a crowd shares an fsync.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiosqlite

from goodbot.errors import StoreError, StoreFullError

T = TypeVar("T")
Operation = Callable[[aiosqlite.Connection], Awaitable[T]]

MAX_BATCH = 256
MAX_QUEUE = 8192


class Writer:
    """The one task that writes through the one writing connection."""

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._db = db
        self._queue: asyncio.Queue[tuple[Operation[Any], asyncio.Future[Any]] | None] = (
            asyncio.Queue(MAX_QUEUE)
        )
        self._task = asyncio.create_task(self._run(), name="store writer")
        self._closed = False

    async def write(self, operation: Operation[T]) -> T:
        """Run `operation` in the next transaction; returns its result after the commit.

        Raises StoreError (nothing was stored), or whatever the operation itself raised.
        """
        if self._closed:
            raise StoreError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._queue.put((operation, future))
        if self._task.done():  # it waited for a place in the queue until all was over
            raise StoreError("the store is closed")
        return await future

    async def close(self) -> None:
        """Finish what is queued, then stop."""
        if not self._closed:
            self._closed = True
            await self._queue.put(None)
        await self._task

    async def _run(self) -> None:
        last = False
        while not last:
            entry = await self._queue.get()
            batch: list[tuple[Operation[Any], asyncio.Future[Any]]] = []
            while True:
                if entry is None:
                    last = True
                else:
                    batch.append(entry)
                if last or len(batch) >= MAX_BATCH or self._queue.empty():
                    break
                entry = self._queue.get_nowait()
            if batch:
                await self._commit(batch)
        while not self._queue.empty():
            if (entry := self._queue.get_nowait()) is not None:
                _resolve(entry[1], None, StoreError("the store is closed"))

    async def _commit(self, batch: list[tuple[Operation[Any], asyncio.Future[Any]]]) -> None:
        results: list[tuple[asyncio.Future[Any], Any, Exception | None]] = []
        try:
            await self._db.execute("BEGIN IMMEDIATE")
            for operation, future in batch:
                await self._db.execute("SAVEPOINT operation")
                try:
                    results.append((future, await operation(self._db), None))
                except Exception as error:
                    if not self._db.in_transaction:
                        raise  # SQLite itself rolled everything back (disk full, I/O error)
                    await self._db.execute("ROLLBACK TO operation")
                    results.append((future, None, explain(error)))
                await self._db.execute("RELEASE operation")
            await self._db.commit()
        except Exception as error:
            failure = explain(error)
            if self._db.in_transaction:
                # Should even that fail, then so will each BEGIN: nothing is acknowledged wrongly.
                with contextlib.suppress(sqlite3.Error):
                    await self._db.rollback()
            for _, future in batch:
                _resolve(future, None, failure)
        else:
            for future, result, error in results:
                _resolve(future, result, error)


def _resolve(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # the caller was cancelled; the commit stands
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def explain(error: Exception) -> Exception:
    """SQLite's own errors as sentences; other errors as they are."""
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        full = StoreFullError(
            "the disk is full: nothing was stored; free some space and it goes on"
        )
        full.__cause__ = error
        return full
    reasons = {
        sqlite3.SQLITE_BUSY: "the database is locked by another program",
        sqlite3.SQLITE_IOERR: "the disk failed while the database was written",
        sqlite3.SQLITE_CORRUPT: "the database file is damaged: restore a backup of it",
        sqlite3.SQLITE_NOTADB: "the file is not a goodbot database",
        sqlite3.SQLITE_READONLY: "the database cannot be written: check its permissions",
        sqlite3.SQLITE_CANTOPEN: "the database cannot be opened: check the directory's permissions",
    }
    wrapped = StoreError(f"{reasons.get(code, 'the database refused')} ({error})")
    wrapped.__cause__ = error
    return wrapped
