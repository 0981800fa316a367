# SPDX-License-Identifier: Apache-2.0
"""The store: SQLite in WAL mode with `synchronous=FULL`, and the only SQL in goodbot.

One connection writes (`write`, group commit) and one, read-only, reads (`read`). The modules
beside this one hold the queries by topic: `ledger` (rating events and labels), `inbox` (messages
and commands under way, cursors), `turns`, `training_pool` (what a run may claim), `runs`,
`adapters` (versions, pointer), `people` (grants, links), `codes`, `channels`, `rollback_window`,
`teaching` (which labels teach), `review_queue` (what there is to rate), `notes` (what people want of
answers), `forgetting`, `settings` (shares, switches, audit). Each query takes the connection it runs on,
so that several of them can share one transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from goodbot.api.rewards import RewardPolicy
from goodbot.base.clock import growing
from goodbot.base.errors import StoreDamagedError, StoreError
from goodbot.base.worded import Worded, said_by
from goodbot.store import cipher, inspection, soundness, teaching
from goodbot.store.commit_queue import CommitQueue, Operation, explain, is_damage
from goodbot.store.connection import connect, put_away, set_pragmas
from goodbot.store.inline import Quick
from goodbot.store.migrate import check, migrate, migrations, schema
from goodbot.store.query import fetch, first

logger = logging.getLogger(__name__)
T = TypeVar("T")
_LOOK_SECONDS, _LONGEST_PAUSE = 10.0, 600.0
_LOG_PAGES = 1000
"""Of the log, with so many it is written into the file: what SQLite does by itself."""


class Store:
    """An open database. Made by `Store.open`, ended by `close`."""

    def __init__(
        self,
        path: Path,
        writing: aiosqlite.Connection,
        reading: aiosqlite.Connection,
        policy: RewardPolicy | None = None,
    ) -> None:
        self.path = path
        self._policy = policy
        self._reading = reading
        self._writer = CommitQueue(writing, self._reopen)
        self._snapshots = 0
        self.looking: asyncio.Task[None] | None = None
        """The check of a large file, which goes on behind the start."""
        self._unchecked = False
        """It has not ended: what comes is kept in the log beside the file, which is as it was found."""
        self._looked, self._found = -math.inf, ""
        self._looks: aiosqlite.Connection | None = None
        self._closing = asyncio.Event()

    @classmethod
    async def open(cls, path: Path, policy: RewardPolicy | None = None) -> Store:
        """Open or create the database at `path`, migrated to this version.

        What teaches is counted by `policy`; without one by good and bad. An older schema is migrated
        after a verified copy was put beside it. Raises StoreError (damaged, locked, not ours, no
        space, settings refused) or NewerDataError.
        """
        opened: list[aiosqlite.Connection] = []
        try:
            writing = await connect(path, policy=policy)
            opened.append(writing)
            reading = await connect(path, "mode=ro", policy)
            opened.append(reading)
            await check(writing)  # before anything is changed: it may be another program's
            sound = await _checked(writing, path)  # nor is a damaged one written to
            await set_pragmas(writing)
            await migrate(writing, path)
            await reading.execute("PRAGMA query_only = 1")
        except BaseException as error:
            await put_away(*opened)
            if isinstance(error, cipher.errors()):
                known = soundness.without_space(error, path) or await soundness.damage(error, path)
                raise known or explain(error) from error
            raise
        path.chmod(0o600)
        store = cls(path, writing, reading, policy)
        store._unchecked = not sound
        try:
            if policy is not None:
                await store.write(lambda db: teaching.count_all(db, policy))
        except BaseException:
            await store.close()
            raise
        if not sound:
            store.looking = asyncio.create_task(store._look_behind(), name="quick check")
        return store

    @property
    def trouble(self) -> str:
        """Why nothing can be stored at present, as a sentence; empty when all is well."""
        return self._writer.trouble or self._writer.full

    @property
    def waiting(self) -> int:
        """How many changes wait to be stored."""
        return self._writer.waiting

    @property
    def size(self) -> int:
        """Bytes of the database and its log."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def _writing(self) -> aiosqlite.Connection:
        return self._writer.db

    async def close(self) -> None:
        """Commit what is queued and close both connections. A check under way is not waited for.

        A file that was not found sound is left as it is: what was stored since lies in the log beside it.
        """
        self._closing.set()
        while self.looking is not None and not self.looking.done():
            if self._looks is not None:
                await self._looks.interrupt()
            await asyncio.wait({self.looking}, timeout=0.1)  # it had perhaps not begun
        try:
            await self._writer.close()
        finally:  # a thread left open would keep the process alive for ever
            # Whoever closes last writes the log into the file; one that only reads cannot.
            kept = self._unchecked or self._writer.damaged
            ends = (self._writer.db, self._reading) if kept else (self._reading, self._writer.db)
            for db in ends:
                await db.close()

    async def write(self, operation: Operation[T], *, quick: bool = False) -> T:
        """Run `operation` in a transaction; returns after its commit. See `CommitQueue.write`.

        `quick`: it is a few short statements, each of which finds its rows by an index (`inline`).
        """
        return await self._writer.write(Quick(operation) if quick else operation)

    async def read(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries on the last committed state."""
        try:
            return await operation(self._reading)
        except cipher.errors() as error:
            raise await self._not_read(error) from error

    async def snapshot(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries that all see the state of one moment, however long they take.

        On a connection of their own: whoever reads or writes meanwhile does not wait, but `compact` does.
        Raises as `read`.
        """
        self._snapshots += 1
        try:
            db = await connect(self.path, "mode=ro", self._policy)
            try:
                await db.execute("PRAGMA query_only = 1")
                await db.execute("BEGIN")
                return await operation(db)
            finally:
                await db.close()
        except cipher.errors() as error:
            raise await self._not_read(error) from error
        finally:
            self._snapshots -= 1

    @contextlib.asynccontextmanager
    async def moment(self) -> AsyncGenerator[aiosqlite.Connection]:
        """A connection that sees the database as it is now, as long as it is open; nobody waits for it."""
        async with inspection.look(self.path) as db:
            await db.execute("BEGIN")
            yield db

    async def _not_read(self, error: Exception) -> Exception:
        """Why something was not read, as a sentence."""
        if not is_damage(error):
            return explain(error, reading=True)
        await self._look()
        return StoreError(self._found)

    async def _look_behind(self) -> None:
        """Check the file until that has come to an end; then the log may be written into it."""

        async def go_on(db: aiosqlite.Connection) -> None:
            await fetch(db, f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")

        for tries in itertools.count():
            if self._closing.is_set():
                return
            if await self._look():
                with contextlib.suppress(StoreError):  # it ends, or is opened anew, which checks it, too
                    await self._writer.alone(go_on)
                    self._unchecked = False
                return
            if self._writer.damaged:
                return
            # What is written stays in the log meanwhile, which grows.
            logger.warning("the database cannot be read whole, so that it is not checked: %s", self._found)
            with contextlib.suppress(TimeoutError):  # the disk did not give it just now
                async with asyncio.timeout(growing(tries, first=_LOOK_SECONDS, most=_LONGEST_PAUSE)):
                    await self._closing.wait()

    async def _look(self) -> bool:
        """See, not more often than every ten seconds, whether the file is damaged or was only not read.

        True: it is sound.
        """
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        self._found = Worded("the disk failed for a moment while the database was read: try again")
        try:
            db = await connect(self.path, "mode=ro", self._policy)
            try:
                if not self._closing.is_set():
                    self._looks = db
                    await soundness.require_sound(db, self.path)
                    return True
            finally:
                self._looks = None
                await db.close()
        except StoreDamagedError as error:
            self._found = said_by(error)
            self._writer.is_damaged(self._found)
        except (StoreError, *cipher.errors()) as error:
            self._found = said_by(explain(error, reading=True))
        return False

    async def compact(self) -> None:
        """Rewrite the database: nothing that was deleted is in its file or its log afterwards.

        Raises StoreError; then all is as it was, and it is to be tried again.
        """

        if self._unchecked:
            raise StoreError(Worded("the database is still being checked: it is tried again soon"))
        if self._snapshots:  # the log could not be emptied: it would only grow, by all that is rewritten
            raise StoreError(Worded("the database is still being read: it is tried again soon"))

        async def operation(db: aiosqlite.Connection) -> None:
            await fetch(db, "VACUUM")
            row = first(await fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)"))
            if row is None or row[0] != 0:
                raise StoreError(Worded("the database is still being read: it is tried again soon"))

        await self._writer.alone(operation)

    async def _reopen(self) -> aiosqlite.Connection:
        """A new writing connection, after a disk error: nothing of the old log may be built upon.

        What it holds is copied into the database and synced, and the log starts from nothing.
        """
        writing = await connect(self.path, "mode=rw", self._policy)
        try:
            await check(writing)
            await set_pragmas(writing)
            await soundness.require_sound(writing, self.path)
            row = first(await fetch(writing, "PRAGMA wal_checkpoint(TRUNCATE)"))
            if row is None or row[0] != 0:
                raise StoreError(Worded("the database is still being read: try again"))
        except BaseException:
            await writing.close()
            raise
        self._unchecked = False
        return writing


async def _checked(db: aiosqlite.Connection, path: Path) -> bool:
    """Check the file before anything is written; False: it is too large for that, and nothing is written.

    Until it was checked behind the start, what comes is kept in the log beside it. Where the schema is an
    older one, all of it is read and copied first anyway (`backup.before_change`). Raises StoreError,
    sqlite3.Error.
    """
    mode = first(await fetch(db, "PRAGMA journal_mode"))
    if path.stat().st_size <= soundness.AT_ONCE or mode != ("wal",):
        await soundness.require_sound(db, path)
        return True
    if await schema(db) < len(migrations()):
        return True
    await fetch(db, "PRAGMA wal_autocheckpoint = 0")
    return False
