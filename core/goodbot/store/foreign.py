# SPDX-License-Identifier: Apache-2.0
"""Databases of other programs, read so that not a byte of them changes, and nothing in them is run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded

_LARGEST = 16 * 1024 * 1024
"""Bytes of one value: more is no text that somebody rated."""
_TURN, _TURNS, _BYTES = 10_000, 100, 1000
"""SQLite's instructions between two looks; and how many looks are free, besides one for so many bytes: a row
takes some 40 instructions, and 30 bytes at least."""
_FEEDBACK = ("id", "model", "prompt", "response", "rating", "rollout_context", "source", "created_at")
"""Columns of ReinforceClaw 0.1.0; its earlier databases lack some."""
_NEEDED = {"id", "model", "prompt", "response", "rating"}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _bound(db: sqlite3.Connection, path: Path) -> None:
    """End what takes longer than its file is large: a tree whose branches meet again has no end to come to.

    SQLite itself looks for that only where it checks a file, and Ctrl-C would not be heard.
    """
    log = path.with_name(f"{path.name}-wal")
    left = _TURNS + sum(one.stat().st_size for one in (path, log) if one.is_file()) // _BYTES

    def over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    db.set_progress_handler(over, _TURN)


def reinforceclaw(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The rated rows of its `feedback`, oldest first, with how many are read, and how many there are.

    Raises UsageError.
    """
    # While no log lies there nobody writes; SQLite would make one even for a reader.
    still = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{still}", uri=True)) as db:
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
            _bound(db, path)
            db.text_factory = _text
            db.execute("PRAGMA trusted_schema = 0")
            db.execute("PRAGMA query_only = 1")
            kind = db.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'feedback'"
            ).fetchone()
            there = {row[1] for row in db.execute("PRAGMA table_info(feedback)")}
            # A view may never end.
            if kind is None or not kind[0].upper().startswith("CREATE TABLE") or not there >= _NEEDED:
                other = "{name} is no database of ReinforceClaw: no table `feedback` as it has it"
                raise UsageError(Worded(other, name=path.name))
            (count,) = db.execute("SELECT count(*) FROM feedback WHERE rating <> 0").fetchone()
            columns = [name for name in _FEEDBACK if name in there]
            rows = db.execute(
                f"SELECT {', '.join(columns)} FROM feedback WHERE rating <> 0 ORDER BY id"  # noqa: S608
            )
            for number, row in enumerate(rows, 1):
                values = [_text(one) if isinstance(one, bytes) else one for one in row]
                yield number, count, dict(zip(columns, values, strict=True))
    except sqlite3.Error as error:
        wrong = "{name} cannot be read as a database of ReinforceClaw: {why}"
        raise UsageError(Worded(wrong, name=path.name, why=str(error))) from error
