# SPDX-License-Identifier: Apache-2.0
"""Which schema a PostgreSQL database has, and bringing it to this version's: as `goodbot.store.migrate` does.

An empty place gets what the migrations leave of an empty store. One with data gets each later migration, put
into PostgreSQL's words, in a transaction of its own.
"""

from __future__ import annotations

import hashlib
import logging
from importlib.resources import files

from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.store import backup
from goodbot.store.migrate import migrations
from goodbot.store.postgres import ddl
from goodbot.store.postgres.connection import ServerConnection

logger = logging.getLogger(__name__)

_OURS = "goodbot_schema"
"""The table that says which schema it is, and which functions are there."""
_OPENING = f"ALTER TABLE {_OURS} ADD COLUMN IF NOT EXISTS opening TEXT NOT NULL DEFAULT ''"


async def check(db: ServerConnection) -> int:
    """The schema that is there, 0 in an empty place; changes nothing. Raises StoreError, NewerDataError."""
    ours = f"SELECT schema FROM {_OURS}"  # noqa: S608
    if not (await db.plain("SELECT to_regclass($1::text) IS NOT NULL", (_OURS,)))[0][0]:
        there = await db.plain(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace LIMIT 1"
        )
        if there:
            other = (
                "the PostgreSQL database holds something else ({table}): make one for goodbot alone, or a "
                "schema"
            )
            raise StoreError(Worded(other, table=str(there[0][0])))
        return 0
    found = int((await db.plain(ours))[0][0])
    backup.require_schema(found, len(migrations()))
    return found


async def begin(db: ServerConnection) -> str:
    """Mark that a goodbot begins to write here; the mark, which no other one has."""
    await _step(db, (f"UPDATE {_OURS} SET opening = gen_random_uuid()::text",))  # noqa: S608
    return await opening(db)


async def opening(db: ServerConnection) -> str:
    """Who began to write here last."""
    return str((await db.plain(f"SELECT opening FROM {_OURS}"))[0][0])  # noqa: S608


async def migrate(db: ServerConnection) -> None:
    """Bring what `check` has passed to this version. Raises StoreError; then a step has not been done."""
    found = await check(db)
    functions = files("goodbot.store.postgres").joinpath("functions.sql").read_text(encoding="utf-8")
    digest = hashlib.sha256(functions.encode()).hexdigest()
    if not found:
        shape = ddl.shape()
        made = (
            f"CREATE TABLE {_OURS} (schema BIGINT NOT NULL, functions TEXT NOT NULL)",
            _OPENING,
            f"INSERT INTO {_OURS} (schema, functions) VALUES ({shape.schema}, '{digest}')",  # noqa: S608
        )
        await _step(db, (functions, *shape.statements, *made))
        return
    await _step(db, (_OPENING,))
    if digest != (await db.plain(f"SELECT functions FROM {_OURS}"))[0][0]:  # noqa: S608
        await _step(db, (functions, f"UPDATE {_OURS} SET functions = '{digest}'"))  # noqa: S608
    for number, _ in migrations()[found:]:
        logger.info("the data is upgraded to schema %d", number)
        await _step(db, (*ddl.script(number), f"UPDATE {_OURS} SET schema = {number}"))  # noqa: S608


async def _step(db: ServerConnection, statements: tuple[str, ...]) -> None:
    """All of it, or nothing."""
    await db.execute("BEGIN IMMEDIATE")
    try:
        for one in statements:
            await db.plain(one)
        await db.commit()
    finally:
        if db.in_transaction:
            await db.rollback()
