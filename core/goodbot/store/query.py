# SPDX-License-Identifier: Apache-2.0
"""Reading rows in one trip to the database's thread; a cursor would take three."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import aiosqlite

Row = tuple[Any, ...]
T = TypeVar("T")


async def fetch(
    db: aiosqlite.Connection, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()
) -> list[Row]:
    """All rows of a query."""
    return [tuple(row) for row in await db.execute_fetchall(sql, parameters)]  # pyright: ignore[reportArgumentType]


def first(rows: list[Row]) -> Row | None:
    """The first row, if there is one."""
    return rows[0] if rows else None


async def value(
    db: aiosqlite.Connection,
    sql: str,
    parameters: Iterable[Any] | Mapping[str, Any] = (),
    *,
    default: Any = None,
) -> Any:
    """The first column of the first row, or the default where there is no row."""
    row = first(await fetch(db, sql, parameters))
    return row[0] if row else default


def records(kind: type[T], rows: Iterable[Row], **common: Any) -> list[T]:
    """Each row as a dataclass, whose fields beside the `common` ones begin with the row's columns."""
    names = [field.name for field in fields(kind) if field.name not in common]  # pyright: ignore[reportArgumentType]
    return [kind(**dict(zip(names, row, strict=False)), **common) for row in rows]
