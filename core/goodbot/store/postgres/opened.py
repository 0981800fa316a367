# SPDX-License-Identifier: Apache-2.0
"""The store on PostgreSQL: the same contract as that in a file, `goodbot.store.Store`.

One daemon has the data, one connection of it writes, in the same groups as to a file, and one reads. What
others need who look at a file (backup, encryption, the check for damage) is PostgreSQL's own affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from goodbot.api.rewards import RewardPolicy
from goodbot.base.clock import SystemClock
from goodbot.base.errors import NewerDataError, StoreError
from goodbot.base.worded import Worded
from goodbot.store import Store, teaching
from goodbot.store.commit_queue import CommitQueue, explain
from goodbot.store.postgres import failures, looking, schema
from goodbot.store.postgres.connection import ServerConnection, connect

if TYPE_CHECKING:
    import aiosqlite

logger = logging.getLogger(__name__)
T = TypeVar("T")


class PostgresStore(Store):
    """An open database on a server. Made by `open_postgres`, ended by `close`."""

    def __init__(
        self,
        url: str,
        path: Path,
        policy: RewardPolicy | None,
        writing: ServerConnection,
        reading: ServerConnection,
    ) -> None:
        self.path = path
        self.looking = None
        self._url = url
        self._policy = policy
        self._reads = reading
        self._connecting = asyncio.Lock()
        self._bytes = 0
        self._opening = ""
        self._writer = CommitQueue(_as_of_sqlite(writing), self._reopen)

    @property
    def size(self) -> int:
        """Bytes of the database, as they were when it was compacted last, or opened."""
        return self._bytes

    async def close(self) -> None:
        """Commit what is queued and close both connections."""
        try:
            await self._writer.close()
        finally:
            for db in (self._writer.db, self._reads):
                with contextlib.suppress(*failures.errors()):
                    await db.close()

    async def read(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries on the last committed state, once more where the connection was lost meanwhile."""
        try:
            try:
                return await operation(_as_of_sqlite(await self._connected()))
            except failures.errors() as error:
                if not failures.lost(error):
                    raise
            return await operation(_as_of_sqlite(await self._connected()))
        except failures.errors() as error:
            raise explain(error, reading=True) from error

    async def _connected(self) -> ServerConnection:
        """The connection that reads, made anew where the one before was lost."""
        async with self._connecting:
            if self._reads.closed:
                self._reads = await connect(self._url, self.path, reads=True)
            return self._reads

    async def snapshot(self, operation: Callable[[aiosqlite.Connection], Awaitable[T]]) -> T:
        """Run queries that all see the state of one moment, however long they take. Raises as `read`."""
        async with self.moment() as db:
            return await operation(db)

    @contextlib.asynccontextmanager
    async def moment(self) -> AsyncGenerator[aiosqlite.Connection]:
        """A connection that sees the database as it is now, as long as it is open; nobody waits for it."""
        async with looking.look(self._url, self.path, self._policy) as db:
            yield db

    async def compact(self) -> None:
        """Have what was deleted taken out of the tables' files; of the server's log it goes in its own time.

        Raises StoreError; then it is to be tried again.
        """

        async def tables(db: aiosqlite.Connection) -> None:
            ours = cast("ServerConnection", db)
            await ours.plain(_FORGET)
            for (table,) in await ours.plain(_TABLES):
                await ours.plain(f'VACUUM (FULL, ANALYZE) "{table}"')

        async def notes(db: aiosqlite.Connection) -> None:
            ours = cast("ServerConnection", db)
            await ours.plain("VACUUM FULL pg_catalog.pg_statistic")  # no more than a warning where it may not
            await ours.plain("CHECKPOINT" if await _may_checkpoint(ours) else "SELECT 1")
            await self._measure(ours)

        for operation in (tables, notes):
            await self._unseen()
            await self._writer.alone(operation)

    async def _unseen(self) -> None:
        """Wait until nobody can see any more what is deleted by now: till then `VACUUM` keeps it.

        Raises StoreError where somebody goes on reading.
        """
        now = str(await self._ask("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
        clock = SystemClock()  # the server's time goes by, whatever clock there is here
        until = clock.monotonic() + _PATIENCE
        while await self._ask(_SEEN, now):
            if clock.monotonic() >= until:
                raise StoreError(Worded("the database is still being read: it is tried again soon"))
            await clock.sleep(0.1)

    async def _ask(self, sql: str, *values: Any) -> Any:
        """One value out of what the connection that reads is told."""
        return (await self.read(lambda db: cast("ServerConnection", db).plain(sql, values)))[0][0]

    async def _begin(self, db: ServerConnection) -> None:
        self._opening = await schema.begin(db)
        await self._measure(db)

    async def _measure(self, db: ServerConnection) -> None:
        self._bytes = int((await db.plain(_SIZE))[0][0])

    async def _reopen(self) -> aiosqlite.Connection:
        """A new writing connection, where the one before was lost."""
        lost = cast("ServerConnection", self._writer.db).pid
        db = await _writing(self._url, self.path, self._policy, lost)
        try:
            with contextlib.suppress(NewerDataError):
                if await schema.check(db) and await schema.opening(db) == self._opening:
                    return _as_of_sqlite(db)
            other = "another goodbot used the data meanwhile, or they were restored: start goodbot again"
            raise StoreError(Worded(other))
        except BaseException:
            with contextlib.suppress(*failures.errors()):
                await db.close()
            raise


_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    " ORDER BY relname"
)
_FORGET = (
    "SELECT count(pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)::text"
    ") FROM pg_stats WHERE schemaname = current_schema()"
)
"""The planner's notes quote what is most frequent; of a table that is empty they would not be made anew."""
_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)


_PATIENCE = 15.0
"""Seconds; a standby says every ten of them what is still read there."""
_SEEN = (
    "SELECT count(*) FROM (SELECT backend_xmin FROM pg_stat_activity WHERE datname = current_database()"
    " UNION ALL SELECT backend_xmin FROM pg_stat_replication"
    " UNION ALL SELECT xmin FROM pg_replication_slots"
    # Of all that is under way, also of what is prepared, this is the oldest.
    " UNION ALL SELECT pg_snapshot_xmin(pg_current_snapshot())::xid"
    ") AS reading (since) WHERE age(since) > age($1::text::xid8::xid)"
)
"""How many see what was there before the transaction of that number."""
_TAKEN = Worded(
    "another goodbot uses the data of [store] url: end it, or give this one a database of its own"
)
_HELD = Worded("the database server still holds the connection that was lost: it is tried again soon")


async def _may_checkpoint(db: ServerConnection) -> bool:
    return bool((await db.plain("SELECT pg_has_role('pg_checkpoint', 'USAGE')"))[0][0])


def _as_of_sqlite(db: ServerConnection) -> aiosqlite.Connection:
    """The queries are typed by SQLite's, of which this offers what they use."""
    return cast("aiosqlite.Connection", db)


async def _writing(url: str, path: Path, policy: RewardPolicy | None, lost: int = 0) -> ServerConnection:
    """The connection that writes, and holds the place of the one daemon, as `lost` did before."""
    db = await connect(url, path, policy)
    try:
        if (await db.plain("SHOW transaction_read_only"))[0][0] == "on":
            raise StoreError(failures.READ_ONLY)
        if not await db.alone():
            raise StoreError(_HELD if lost and await db.holder() == lost else _TAKEN)
        if not lost:
            await schema.check(db)
    except BaseException:
        with contextlib.suppress(*failures.errors()):
            await db.close()
        raise
    return db


async def open_postgres(url: str, path: Path, policy: RewardPolicy | None = None) -> PostgresStore:
    """Open or make the data at `url`, brought to this version.

    `path` is where the file would lie: beside it is what is no affair of the database, as keys. Raises
    StoreError (unreachable, not ours, another goodbot has it), NewerDataError, MissingExtraError.
    """
    opened: list[ServerConnection] = []
    try:
        opened.append(writing := await _writing(url, path, policy))
        await schema.migrate(writing)
        opened.append(reading := await connect(url, path, reads=True))
        store = PostgresStore(url, path, policy, writing, reading)
        await store._begin(writing)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except BaseException as error:
        for db in opened:
            with contextlib.suppress(*failures.errors()):
                await db.close()
        if isinstance(error, failures.errors()):
            raise explain(error) from error
        raise
    try:
        if policy is not None:
            await store.write(lambda db: teaching.count_all(db, policy))
    except BaseException:
        await store.close()
        raise
    return store
