# SPDX-License-Identifier: Apache-2.0
"""Looking at the data on a server without changing anything, also while a daemon writes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from goodbot.api.rewards import RewardPolicy
from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.store.postgres import failures, schema
from goodbot.store.postgres.connection import connect

if TYPE_CHECKING:
    import aiosqlite


class NothingStoredError(StoreError):
    """The database is there, and goodbot has not begun in it."""


_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@contextlib.asynccontextmanager
async def look(
    url: str, path: Path, policy: RewardPolicy | None = None
) -> AsyncGenerator[aiosqlite.Connection]:
    """A connection that sees the data as they are now. Raises StoreError, MissingExtraError."""
    try:
        db = await connect(url, path, policy, reads=True)
        try:
            if not await schema.check(db):
                raise NothingStoredError(Worded("there is no data in {home}", home="[store] url"))
            await db.plain(_MOMENT)
            yield cast("aiosqlite.Connection", db)
        finally:
            await db.close()
    except failures.errors() as error:
        raise (failures.explain(error) or error) from error
