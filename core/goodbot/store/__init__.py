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
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from goodbot.api.rewards import RewardPolicy
from goodbot.base.errors import StoreDamagedError, StoreError
from goodbot.store import cipher, soundness, teaching
from goodbot.store.commit_queue import CommitQueue, Operation, explain, is_damage
from goodbot.store.connection import connect, set_pragmas
from goodbot.store.inline import Quick
from goodbot.store.migrate import check, migrate
from goodbot.store.query import fetch, first

T = TypeVar("T")
_LOOK_SECONDS = 10.0


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
        self.looking: asyncio.Task[None] | None = None
        """The check of a large file, which goes on behind the start."""
        self._looked, self._found = -math.inf, ""
        self._looks: aiosqlite.Connection | None = None
        self._closing = False

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
            await check(writing)  # before anything is changed: it may be another program's
            small = path.stat().st_size <= soundness.AT_ONCE
            if small:  # nor is a damaged one written to
                await soundness.require_sound(writing, path)
            await set_pragmas(writing)
            await migrate(writing, path)
            reading = await connect(path, "mode=ro", policy)
            opened.append(reading)
            await reading.execute("PRAGMA query_only = 1")
        except BaseException as error:
            # An aiosqlite thread left open would keep the process alive for ever.
            for db in reversed(opened):
                await db.close()
            if isinstance(error, cipher.errors()):
                known = soundness.without_space(error, path) or await soundness.damage(error, path)
                raise known or explain(error) from error
            raise
        path.chmod(0o600)
        store = cls(path, writing, reading, policy)
        try:
            if policy is not None:
                await store.write(lambda db: teaching.count_all(db, policy.name))
        except BaseException:
            await store.close()
            raise
        if not small:
            store.looking = asyncio.create_task(store._look(), name="quick check")
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
        """Commit what is queued and close both connections. A check under way is not waited for."""
        self._closing = True
        while self.looking is not None and not self.looking.done():
            if self._looks is not None:
                await self._looks.interrupt()
            await asyncio.wait({self.looking}, timeout=0.1)  # it had perhaps not begun
        try:
            await self._writer.close()
        finally:  # a thread left open would keep the process alive for ever
            await self._reading.close()  # first, so that the writer's close is the checkpoint
            await self._writer.db.close()

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
            if is_damage(error):
                await self._look()
                raise StoreError(self._found) from error
            raise explain(error, "read") from error

    async def _look(self) -> None:
        """See, not more often than every ten seconds, whether the file is damaged or was only not read."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        self._found = "the disk failed for a moment while the database was read: try again"
        try:
            db = await connect(self.path, "mode=ro", self._policy)
            try:
                if not self._closing:
                    self._looks = db
                    await soundness.require_sound(db, self.path)
            finally:
                self._looks = None
                await db.close()
        except StoreDamagedError as error:
            self._found = str(error)
            self._writer.is_damaged(self._found)
        except (StoreError, *cipher.errors()) as error:
            self._found = str(explain(error, "read"))

    async def compact(self) -> None:
        """Rewrite the database: nothing that was deleted is in its file or its log afterwards.

        Raises StoreError; then all is as it was, and it is to be tried again.
        """

        async def operation(db: aiosqlite.Connection) -> None:
            await fetch(db, "VACUUM")
            row = first(await fetch(db, "PRAGMA wal_checkpoint(TRUNCATE)"))
            if row is None or row[0] != 0:
                raise StoreError("the database is still being read: it is tried again soon")

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
                raise StoreError("the database is still being read: try again")
        except BaseException:
            await writing.close()
            raise
        return writing
