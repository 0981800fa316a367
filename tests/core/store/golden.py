# SPDX-License-Identifier: Apache-2.0
"""The data of older goodbots, as they wrote it themselves, to be upgraded in tests."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

RELEASE = Path(__file__).parent / "release_0_1_0"


def state_of_0_1_0(home: Path) -> Path:
    """Put that of the release before into `home`; returns its database."""
    return _put(RELEASE, home)


def state_of_schema_2(home: Path) -> Path:
    """Put that of a goodbot between the releases into `home`; returns its database."""
    return _put(RELEASE.with_name("schema_2"), home)


def _put(state: Path, home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    path = home / "goodbot.db"
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.executescript((state / "goodbot.sql").read_text(encoding="utf-8"))
    db.close()
    shutil.copytree(state / "adapters", home / "adapters")
    return path


def content(path: Path) -> dict[str, list[Any]]:
    """All rows by table, each a mapping from columns to values, in a stable order."""
    with sqlite3.connect(path) as db:
        db.row_factory = sqlite3.Row
        names = [
            row[0]
            for row in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        found = {
            name: sorted((dict(row) for row in db.execute(f'SELECT * FROM "{name}"')), key=str)
            for name in names
        }
    db.close()
    return found


def version(path: Path) -> int:
    with sqlite3.connect(path) as db:
        [(number,)] = db.execute("PRAGMA user_version")
    db.close()
    return number


def schema(path: Path) -> dict[str, Any]:
    """What the tables, their columns, indexes and triggers are, without the way they are written."""
    with sqlite3.connect(path) as db:
        tables = db.execute("SELECT name, type, wr, strict FROM pragma_table_list").fetchall()
        found: dict[str, Any] = {
            f"table {name}": (
                kind,
                wr,
                strict,
                sorted(tuple(row)[1:] for row in db.execute(f"PRAGMA table_xinfo('{name}')")),
                sorted(tuple(row)[2:] for row in db.execute(f"PRAGMA foreign_key_list('{name}')")),
            )
            for name, kind, wr, strict in tables
            if not name.startswith("sqlite")
        }
        for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql <> ''"):
            if kind != "table":
                found[f"{kind} {name}"] = " ".join(sql.replace('"', "").split())
    db.close()
    return found
