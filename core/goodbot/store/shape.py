# SPDX-License-Identifier: Apache-2.0
"""Whether a database that came from elsewhere has the tables of its schema, and nothing else.

A view or a trigger of somebody else's would run with our rights.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.store import cipher
from goodbot.store.backup import explained
from goodbot.store.migrate import migrations

_TABLES = "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main'"
_COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)'
_OTHERS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type <> 'table' AND sql <> ''"


def require_shape(path: Path, schema: int) -> None:
    """Raise StoreError unless the database looks as migrations up to `schema` leave it."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        for _, sql in migrations()[:schema]:
            ours.executescript(sql)
        expected = _shape(ours)
    key = cipher.key(path)
    with explained(path), contextlib.closing(cipher.connect(path, "mode=ro&immutable=1", key)) as theirs:
        theirs.execute("PRAGMA trusted_schema = 0")
        found = _shape(theirs)
    if found != expected:
        odd = min(set(found) ^ set(expected), default="") or min(
            name for name in expected if found[name] != expected[name]
        )
        strange = "the database in it was not made by goodbot: look at its {odd}"
        raise StoreError(Worded(strange, odd=odd[:80]))


def _shape(db: sqlite3.Connection) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    for name, kind, *rest in db.execute(_TABLES).fetchall():
        if not str(name).startswith("sqlite_"):
            shape[f"{kind} {name}"] = (rest, sorted(db.execute(_COLUMNS, (name,)), key=str))
    for kind, name, table, sql in db.execute(_OTHERS).fetchall():
        # An ALTER TABLE quotes names and keeps the line breaks: neither means anything.
        shape[f"{kind} {name}"] = (table, " ".join(str(sql).replace('"', "").split()))
    return shape
