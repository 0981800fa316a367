# SPDX-License-Identifier: Apache-2.0
"""Group commit: many writes, one `synchronous=FULL` transaction, one fsync.

Operations that share a transaction each run in a savepoint, so one that fails undoes only itself.
`write` returns after the commit, which is what lets a connector acknowledge. While one batch is
being synced the next one gathers, so a lone writer waits for nobody and a crowd shares an fsync.

After a disk error a connection is not used again: a kernel reports a failed fsync once and may
then take the lost pages for written. `reopen` gives a checked one, or nothing is stored; a
damaged database is not written to until goodbot is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import aiosqlite

from goodbot.base.errors import StoreDamagedError, StoreError, StoreFullError
from goodbot.base.worded import Worded, said_by
from goodbot.store import cipher
from goodbot.store.inline import Breath, direct
from goodbot.store.postgres import failures

logger = logging.getLogger(__name__)

T = TypeVar("T")
Operation = Callable[[aiosqlite.Connection], Awaitable[T]]

MAX_BATCH = 256
MAX_QUEUE = 8192
_SAY_SECONDS = 60.0
_BREATH_SECONDS = 0.001
"""So long may operations that run directly keep everything else waiting."""

_DISK = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class CommitQueue:
    """The one task that writes through the one writing connection.

    `reopen` connects anew to a database that it has found sound and synced, or raises.
    """

    def __init__(
        self, db: aiosqlite.Connection, reopen: Callable[[], Awaitable[aiosqlite.Connection]]
    ) -> None:
        self.db = db
        self.trouble = ""
        """Why nothing is stored at present, as a sentence; empty when all is well."""
        self.full = ""
        """Why the last write found no space, as a sentence; empty from the next that is stored on."""
        self._damage: Exception | None = None
        self._said = -math.inf
        self._reopen = reopen
        self._queue: asyncio.Queue[tuple[Operation[Any], asyncio.Future[Any]] | None] = asyncio.Queue(
            MAX_QUEUE
        )
        self._task = asyncio.create_task(self._run(), name="store writer")
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many operations wait for a transaction."""
        return self._queue.qsize()

    @property
    def damaged(self) -> bool:
        """Whether the file was found damaged."""
        return self._damage is not None

    def is_damaged(self, why: str) -> None:
        """Nothing is written from now on, until goodbot is started again on a sound file."""
        if self._damage is None:
            self._damage = StoreError(why)
            self.trouble = why
            logger.error("nothing is stored at present: %s", why)

    async def alone(self, operation: Operation[T]) -> T:
        """Run `operation` between two transactions: what SQLite does in none. Raises as `write`."""
        return await self.write(_Alone(operation))

    async def write(self, operation: Operation[T]) -> T:
        """Run `operation` in the next transaction; returns its result after the commit.

        Raises StoreError (nothing was stored), or whatever the operation itself raised.
        """
        if self._closed:
            raise StoreError(Worded("the store is closed"))
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._queue.put((operation, future))
        if self._task.done():  # it waited for a place in the queue until all was over
            raise StoreError(Worded("the store is closed"))
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
            alone: tuple[Operation[Any], asyncio.Future[Any]] | None = None
            while True:
                if entry is None:
                    last = True
                elif isinstance(entry[0], _Alone):
                    alone = entry
                else:
                    batch.append(entry)
                if last or alone or len(batch) >= MAX_BATCH or self._queue.empty():
                    break
                entry = self._queue.get_nowait()
            if batch:
                await self._commit(batch)
            if alone:
                await self._do_alone(*alone)
        while not self._queue.empty():
            if (entry := self._queue.get_nowait()) is not None:
                _resolve(entry[1], None, StoreError(Worded("the store is closed")))

    async def _do_alone(self, operation: Operation[Any], future: asyncio.Future[Any]) -> None:
        try:
            if self.trouble:
                await self._recover()
            result = await operation(self.db)
        except Exception as error:
            failure = explain(error)
            await self._roll_back(error, failure)
            _resolve(future, None, failure)
        else:
            _resolve(future, result, None)

    async def _commit(self, batch: list[tuple[Operation[Any], asyncio.Future[Any]]]) -> None:
        results: list[tuple[asyncio.Future[Any], Any, Exception | None]] = []
        try:
            if self.trouble:
                await self._recover()
            before = self.db.total_changes
            await self.db.execute("BEGIN IMMEDIATE")
            if len(batch) == 1:  # the transaction is its savepoint
                ((operation, future),) = batch
                results.append((future, await operation(self.db), None))
            else:
                since = time.monotonic()
                for operation, future in batch:
                    results.append((future, *await self._in_savepoint(operation)))
                    if time.monotonic() - since > _BREATH_SECONDS:
                        await Breath()
                        since = time.monotonic()
            await self.db.commit()
        except Exception as error:
            failure = explain(error)
            await self._roll_back(error, failure)
            for _, future in batch:
                _resolve(future, None, failure)
        else:
            self._look_at_space([error for _, _, error in results], self.db.total_changes > before)
            for future, result, error in results:
                _resolve(future, result, error)

    def _look_at_space(self, errors: Sequence[Exception | None], stored: bool) -> None:
        """Remember that the disk is full, or that it is not any more; one line of the log a minute."""
        full = next((error for error in errors if isinstance(error, StoreFullError)), None)
        if full is not None:
            self.full = said_by(full)
            if time.monotonic() - self._said >= _SAY_SECONDS:
                self._said = time.monotonic()
                logger.error("nothing is stored at present: %s", full)
        elif stored and self.full:
            self.full = ""
            logger.warning("there is space again: what comes is stored")

    async def _in_savepoint(self, operation: Operation[Any]) -> tuple[Any, Exception | None]:
        """The operation's result, or the error that has undone it alone."""
        raw = direct(self.db)
        await raw.execute("SAVEPOINT operation")
        result: tuple[Any, Exception | None]
        try:
            result = await operation(self.db), None
        except Exception as error:
            if not self.db.in_transaction or _lost(error):
                raise  # SQLite rolled everything back (disk full), or must
            await raw.execute("ROLLBACK TO operation")
            result = None, explain(error)
        await raw.execute("RELEASE operation")
        return result

    async def _roll_back(self, error: Exception, failure: Exception) -> None:
        """Leave the connection fit for the next batch, or mark it as not to be used again."""
        # A page that the disk did not give looks like a damaged one: `reopen` tells them apart.
        lost = _lost(error)
        if isinstance(error, StoreDamagedError):
            self._damage, self.trouble = failure, said_by(failure)
        self._look_at_space([failure], stored=False)
        try:
            if not self.trouble and self.db.in_transaction:
                await self.db.rollback()
        except (*cipher.errors(), ValueError):
            lost = True
        if (lost or self._damage) and not self.trouble:
            self.trouble = said_by(failure)
            logger.error("nothing is stored at present: %s", failure)

    async def _recover(self) -> None:
        """Connect anew, or raise why that cannot be."""
        if self._damage is not None:
            raise StoreError(said_by(self._damage))
        with contextlib.suppress(*cipher.errors()):
            await self.db.close()
        try:
            self.db = await self._reopen()
        except (StoreError, *cipher.errors()) as error:
            self.trouble = said_by(explain(error))  # it has looked at the file: it knows better
            raise
        logger.warning("the database was opened again and found sound: what comes is stored")
        self.trouble = ""


def _code(error: Exception) -> int:
    """SQLite's primary error code, through `explain`; 0 for other errors."""
    known = error if isinstance(error, cipher.errors()) else error.__cause__
    return getattr(known, "sqlite_errorcode", 0) & 0xFF


def _lost(error: Exception) -> bool:
    """Whether the connection is not to be used again."""
    return _code(error) in _DISK | _DAMAGED or failures.lost(error)


class _Alone:
    """Marks an operation that runs outside of any transaction."""

    def __init__(self, operation: Operation[Any]) -> None:
        self._operation = operation

    async def __call__(self, db: aiosqlite.Connection) -> Any:
        return await self._operation(db)


def _resolve(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # the caller was cancelled; the commit stands
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def is_damage(error: Exception) -> bool:
    """Whether SQLite takes the file for damaged; it says so, too, of a page that the disk does not give."""
    return _code(error) in _DAMAGED


def explain(error: Exception, *, reading: bool = False) -> Exception:
    """The database's own errors as sentences; other errors as they are. `reading`: else it was written."""
    if (known := failures.explain(error)) is not None:
        return known
    if not isinstance(error, cipher.errors()):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        no_room = Worded("the disk is full: nothing was stored; free some space and it goes on")
        full = StoreFullError(no_room)
        full.__cause__ = error
        return full
    reason = _REASONS.get(code, Worded("the database refused"))
    if code == sqlite3.SQLITE_IOERR and reading:
        reason = Worded("the disk failed while the database was read")
    wrapped = StoreError(Worded("{reason} ({error})", reason=reason, error=str(error)))
    wrapped.__cause__ = error
    return wrapped


_REASONS = {
    sqlite3.SQLITE_BUSY: Worded("the database is locked by another program"),
    sqlite3.SQLITE_IOERR: Worded("the disk failed while the database was written"),
    sqlite3.SQLITE_CORRUPT: Worded(
        "a page of the database could not be read: the disk failed, or the file is damaged "
        "(`goodbot doctor` says which)"
    ),
    sqlite3.SQLITE_NOTADB: Worded("the file is not a goodbot database"),
    sqlite3.SQLITE_READONLY: Worded("the database cannot be written: check its permissions"),
    sqlite3.SQLITE_CANTOPEN: Worded("the database cannot be opened: check the directory's permissions"),
}
