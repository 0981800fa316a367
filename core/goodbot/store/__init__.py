"""The store: SQLite in WAL mode with `synchronous=FULL`, and the only SQL in goodbot.

One connection writes (`write`, group commit) and one, read-only, reads (`read`). The modules
beside this one hold the queries by topic: `ledger` (rating events and labels), `inbox` (messages
and commands under way, cursors), `turns`, `claimable` (what a run may claim), `runs`,
`adapters` (versions, pointer), `people` (grants, links), `codes`, `channels`, `quarantine`,
`teaching` (which labels teach), `waiting` (what there is to rate), `forgetting`, `access` (shares,
switches, audit). Each query takes the connection it runs on, so that several of them can share one
transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from goodbot.errors import StoreError
from goodbot.ratings import RewardPolicy
from goodbot.store import teaching
from goodbot.store.connection import connect, set_pragmas
from goodbot.store.direct import Quick
from goodbot.store.migrate import check, migrate
from goodbot.store.query import fetch, first
from goodbot.store.writer import Operation, Writer, explain

T = TypeVar("T")


class Store:
    """An open database. Made by `Store.open`, ended by `close`."""

    def __init__(
        self, path: Path, writing: aiosqlite.Connection, reading: aiosqlite.Connection,
        policy: RewardPolicy | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self._policy = policy
        self._reading = reading
        self._writer = Writer(writing, self._reopen)

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
            await set_pragmas(writing)
            await migrate(writing, path)
            reading = await connect(path, "mode=ro", policy)
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
        store = cls(path, writing, reading, policy)
        try:
            if policy is not None:
                await store.write(lambda db: teaching.count_all(db, policy.name))
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def trouble(self) -> str:
        """Why nothing can be stored at present, as a sentence; empty when all is well."""
        return self._writer.trouble

    @property
    def _writing(self) -> aiosqlite.Connection:
        return self._writer.db

    async def close(self) -> None:
        """Commit what is queued and close both connections."""
        try:
            await self._writer.close()
        finally:  # a thread left open would keep the process alive for ever
            await self._reading.close()  # first, so that the writer's close is the checkpoint
            await self._writer.db.close()

    async def write(self, operation: Operation[T], *, quick: bool = False) -> T:
        """Run `operation` in a transaction; returns after its commit. See `Writer.write`.

        `quick`: it is a few short statements, each of which finds its rows by an index (`direct`).
        """
        return await self._writer.write(Quick(operation) if quick else operation)

    async def read(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries on the last committed state."""
        try:
            return await operation(self._reading)
        except sqlite3.Error as error:
            raise explain(error) from error

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
            if first(await fetch(writing, "PRAGMA quick_check(1)")) != ("ok",):
                raise StoreError("the database file is damaged: bring a backup back")
            row = first(await fetch(writing, "PRAGMA wal_checkpoint(TRUNCATE)"))
            if row is None or row[0] != 0:
                raise StoreError("the database is still being read: try again")
        except BaseException:
            await writing.close()
            raise
        return writing
