# SPDX-License-Identifier: Apache-2.0
"""A connection to PostgreSQL that offers what the queries of the store use of one to SQLite."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goodbot.api.rewards import RewardPolicy
from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.store import refusals, teaching
from goodbot.store.postgres import ddl, dialect
from goodbot.store.postgres.dialect import Translated
from goodbot.store.postgres.parts import load
from goodbot.store.postgres.rules import Computed

_NEEDED = 180000
"""PostgreSQL 18: it folds letters as Python does."""
_REACHED = {
    "connect_timeout": 5,  # less than a look of doctor's may take
    # That a host is gone is known within a minute, also while an answer is waited for.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30000,
}
_SETTINGS = {
    "application_name": "goodbot",
    # A host that is gone holds no lock for longer than a minute.
    "client_connection_check_interval": "10s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # What a role or a database may have set otherwise, and the statements rely on.
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "600s",
    "idle_session_timeout": "0",
    "jit": "off",
    "lock_timeout": "5s",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "transform_null_equals": "off",
    "synchronous_commit": "on",  # a commit that returned survives a power cut of the server
}
_MUST = {"fsync": "on", "full_page_writes": "on", "server_encoding": "UTF8"}
"""What only who runs the server can set, and the store's promises hang on."""
_FOUND = (
    f"SELECT {', '.join(f'current_setting({name!r})' for name in _MUST)}, datlocprovider::text,"  # noqa: S608
    " coalesce(datlocale, datcollate), pg_backend_pid() FROM pg_database WHERE datname = current_database()"
)
_WRITER = "pg_advisory_xact_lock(hashtextextended('goodbot writes ' || current_schema(), 0))"
"""Held by each transaction that writes, to its end: so there is one writer, however many connections."""
_RUNS = "hashtextextended('goodbot runs ' || current_schema(), 0)"
_DAEMON = f"pg_advisory_lock({_RUNS})"
_HOLDER = (
    "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND datname = current_database()"  # noqa: S608
    f" WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32 | objid::bigint) = {_RUNS}"
)
_LOCKED = "55P03"
_BEGINS = "BEGIN IMMEDIATE"
_PRAGMAS = {
    "PRAGMA user_version": "SELECT schema FROM goodbot_schema",
    "PRAGMA quick_check(1)": "SELECT 'ok'",  # whether its files are whole is the server's affair
}


@dataclass(frozen=True, slots=True)
class Returned:
    """What a statement gave: as much of a cursor as the queries use."""

    rowcount: int
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])


class ServerConnection:
    """As `aiosqlite.Connection`, as far as the store goes. Made by `connect`."""

    def __init__(self, raw: Any, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._raw = raw
        self._pid = int(raw.info.backend_pid)
        self._known: dict[str, Translated] = {}
        self._functions = {**functions, "total_changes": lambda: self.total_changes}
        self.total_changes = 0
        """Rows that were changed by what ran here."""

    @property
    def in_transaction(self) -> bool:
        """Whether one is under way, or has failed and is to be rolled back."""
        states: Any = load("psycopg.pq").TransactionStatus
        return self._raw.info.transaction_status in (states.ACTIVE, states.INTRANS, states.INERROR)

    @property
    def pid(self) -> int:
        """The server's number for it, as it was told when it began; also after it ended."""
        return self._pid

    @property
    def closed(self) -> bool:
        """Whether it is of no more use."""
        return bool(self._raw.closed)

    async def plain(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Run what is in PostgreSQL's words already; its rows. Without values it may be a script."""
        return (await self._run(sql, list(values))).rows

    async def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()) -> Returned:
        """Run one statement of the store."""
        if sql == _BEGINS:
            return await self._run(f"BEGIN; SELECT {_WRITER}", [])
        if dialect.is_plain(sql) or sql in _PRAGMAS:
            return await self._run(_PRAGMAS.get(sql, sql), [])
        return await self._run(*self._bound(sql, parameters))

    def _bound(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any]) -> tuple[str, list[Any]]:
        """A statement of the store with its values, as PostgreSQL takes both."""
        known = self._known.get(sql)
        if known is None:
            known = self._known[sql] = dialect.translate(sql, ddl.shape().tables)
        values = dialect.given(known, parameters)
        for one in known.values[len(values) :]:
            values.append(self._compute(one, values))
        kinds = tuple(dialect.kind(one) for one in values)
        return dialect.bound(known, kinds), dialect.used(known, values)

    def _compute(self, wanted: int | str | Computed, values: list[Any]) -> Any:
        assert isinstance(wanted, Computed)  # noqa: S101  those come last
        try:
            found = self._functions[wanted.function](*(values[number] for number in wanted.values))
        except OSError as error:
            raise _refused(error.strerror or str(error)) from error
        return dialect.plain(found)

    async def _run(self, sql: str, values: list[Any]) -> Returned:
        # Of several statements at once none can be prepared; those without values are short, too.
        cursor = await self._raw.execute(sql, values or None, prepare=None if values else False)
        status = str(cursor.statusmessage or "")
        if status.startswith(("INSERT", "UPDATE", "DELETE")):
            self.total_changes += max(0, cursor.rowcount)
        rows: list[tuple[Any, ...]] = await cursor.fetchall() if cursor.description else []
        return Returned(cursor.rowcount, rows)

    async def execute_fetchall(
        self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement; all its rows."""
        return (await self.execute(sql, parameters)).rows

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> None:
        """Run one statement for each of several, without a wait in between."""
        each = [self._bound(sql, one) for one in parameters]
        if not each:
            return
        async with self._raw.pipeline():
            done = [await self._raw.execute(text, values or None) for text, values in each]
        self.total_changes += sum(max(0, cursor.rowcount) for cursor in done)

    async def commit(self) -> None:
        """End the transaction: it is on the server's disk."""
        result = await self._raw.execute("COMMIT", prepare=False)
        if result.statusmessage != "COMMIT":  # a statement had failed, and nobody has rolled it back
            raise _refused(str(result.statusmessage))

    async def rollback(self) -> None:
        """Undo the transaction."""
        await self._raw.execute("ROLLBACK", prepare=False)

    async def interrupt(self) -> None:
        """End what runs there."""
        await self._raw.cancel_safe()

    async def close(self) -> None:
        """End it; what was not committed is undone."""
        await self._raw.close()

    async def alone(self) -> bool:
        """Be the daemon of these data until the connection ends; False: there is another one.

        One that was killed is there still for a moment, until the server knows.
        """
        try:
            await self.plain(f"SELECT {_DAEMON}")
        except load("psycopg").Error as error:
            if error.sqlstate != _LOCKED:
                raise
            return False
        return True

    async def holder(self) -> int:
        """The server's number for the connection of the daemon of these data; 0: there is none."""
        found = await self.plain(_HOLDER)
        return int(found[0][0]) if found else 0


def _refused(why: str) -> StoreError:
    return StoreError(Worded("{reason} ({error})", reason=Worded("the database refused"), error=why))


async def connect(
    url: str, path: Path, policy: RewardPolicy | None = None, *, reads: bool = False
) -> ServerConnection:
    """A connection to the database of `url`, for the state directory that `path` lies in.

    `reads`: it can change nothing. Raises what `failures.errors` lists, MissingExtraError, StoreError.
    """
    psycopg = load("psycopg")
    load("sqlglot")
    raw = await psycopg.AsyncConnection.connect(
        url, autocommit=True, cursor_factory=psycopg.AsyncRawCursor, **_REACHED
    )
    functions = {"refusal_mac": refusals.function(path.parent), "teaches": teaching.function(policy)}
    db = ServerConnection(raw, functions)
    try:
        raw.adapters.register_loader("numeric", _number(psycopg))
        _require_new(raw.info.server_version)
        more = {"default_transaction_read_only": "on"} if reads else {}
        await db.plain("; ".join(f"SET {name} = '{value}'" for name, value in {**_SETTINGS, **more}.items()))
        await _require(db)
    except BaseException:
        with contextlib.suppress(psycopg.Error):
            await db.close()
        raise
    return db


def _number(psycopg: Any) -> Any:
    """How sums of whole numbers are read: PostgreSQL makes of them what Python has no number for."""

    class Number(psycopg.adapt.Loader):
        def load(self, data: Any) -> int | float:
            text = bytes(data).decode()
            return int(text) if text.lstrip("-").isdecimal() else float(text)

    return Number


def _require_new(version: int) -> None:
    """Refuse an old server, before it is told what it does not know. Raises StoreError."""
    if version < _NEEDED:
        old = "the database server is PostgreSQL {found}: goodbot needs {needed} or newer"
        raise StoreError(Worded(old, found=version // 10000, needed=_NEEDED // 10000))


async def _require(db: ServerConnection) -> None:
    """Refuse a server on which the store's promises do not hold. Raises StoreError."""
    ((*settings, provider, collation, pid),) = await db.plain(_FOUND)
    if pid != db.pid:
        pooler = (
            "a pooler stands between goodbot and the database server: let [store] url lead to the server "
            "itself"
        )
        raise StoreError(Worded(pooler))
    for (name, value), found in zip(_MUST.items(), settings, strict=True):
        if found != value:
            wrong = "the database server has {setting} = {found}, and goodbot needs {needed}: change it there"
            raise StoreError(Worded(wrong, setting=name, found=found, needed=value))
    if provider != "b" and (provider, collation) not in (("c", "C"), ("c", "POSIX")):
        other = (
            "the database sorts as {found}: make one with `createdb --template=template0 --encoding=UTF8 "
            "--locale=C`, and set it in [store] url"
        )
        raise StoreError(Worded(other, found=collation))
