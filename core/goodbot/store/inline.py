# SPDX-License-Identifier: Apache-2.0
"""The writing connection without its thread, for operations of a few short statements.

A statement takes microseconds, the way to aiosqlite's thread and back many times that. So the statements
of a rating or a capture run where they are asked for; BEGIN, which may wait for a lock, and COMMIT, which
waits for the disk, do not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import Any, cast

import aiosqlite


class Direct:
    """As much of `aiosqlite.Connection` as the queries of the store use.

    Only while nothing is under way in the connection's own thread: one task writes, so it knows.
    """

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._raw: sqlite3.Connection = db._conn  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001

    async def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._raw.execute(sql, cast("Any", parameters))

    async def execute_fetchall(
        self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()
    ) -> list[Any]:
        """Run one statement; all its rows."""
        return self._raw.execute(sql, cast("Any", parameters)).fetchall()

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> sqlite3.Cursor:
        """Run one statement for each of several."""
        return self._raw.executemany(sql, parameters)


def direct(db: Any) -> Any:
    """A connection without its thread, of one that has none itself."""
    return Direct(db) if isinstance(db, aiosqlite.Connection) else db


class Breath:
    """Awaited, it lets everything else that is ready run once."""

    def __await__(self) -> Generator[None]:
        yield


class Quick:
    """An operation that runs directly; whoever waits for something else in it holds everybody up."""

    def __init__(self, operation: Callable[[aiosqlite.Connection], Awaitable[Any]]) -> None:
        self._operation = operation

    async def __call__(self, db: aiosqlite.Connection) -> Any:
        return await self._operation(direct(db))
