# SPDX-License-Identifier: Apache-2.0
"""Data of goodbot 0.1.0, which called a model in a directory by the directory's name alone."""

from __future__ import annotations

import aiosqlite

from goodbot.store.query import fetch

_TABLES = ("turns", "adapters", "runs", "pointers")
_STANDS = " AND NOT EXISTS (SELECT 1 FROM pointers p WHERE (p.scope, p.model) = (pointers.scope, :new))"
"""SQL: the new name has no pointer of its own."""
_ANY = (
    "SELECT 1 FROM adapters WHERE model = :old UNION ALL SELECT 1 FROM turns"
    " WHERE scope = :scope AND model = :old AND rated > 0 AND spent IS NULL LIMIT 1"
)


async def adopt(db: aiosqlite.Connection, scope: str, model: str) -> bool:
    """What was learnt under `NAME` goes on under `NAME@xxxxxxxx`; False if there was nothing."""
    old, at, _ = model.partition("@")
    if not at or "/" in old or not await fetch(db, _ANY, {"scope": scope, "old": old}):
        return False
    for table in _TABLES:
        stands = _STANDS if table == "pointers" else ""
        query = f"UPDATE {table} SET model = :new WHERE model = :old{stands}"  # noqa: S608
        await db.execute(query, {"new": model, "old": old})
    return True
