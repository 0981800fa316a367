"""Reading rows in one trip to the database's thread; a cursor would take three."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import aiosqlite

Row = tuple[Any, ...]


async def fetch(
    db: aiosqlite.Connection, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()
) -> list[Row]:
    """All rows of a query."""
    return [tuple(row) for row in await db.execute_fetchall(sql, parameters)]  # pyright: ignore[reportArgumentType]


def first(rows: list[Row]) -> Row | None:
    """The first row, if there is one."""
    return rows[0] if rows else None
