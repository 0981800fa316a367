# SPDX-License-Identifier: Apache-2.0
"""What tests of encryption share: a key in a file, and looking for words in all files of a directory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goodbot.cli.encryption import change
from goodbot.config import EncryptionConfig, load, vault
from goodbot.store import cipher

from tests.support import require


def need_libraries() -> None:
    """Skip where the extra `encryption` is not installed."""
    require("sqlcipher3")
    require("cryptography")


def turned_on(home: Path, key: Path) -> EncryptionConfig:
    """Encrypt a state directory, with a key in that file; returns what its config says then."""
    load(home)
    change.turn_on(home, None, f"file:{key}", lambda *_: None)
    return load(home).encryption


def turned_off(home: Path) -> None:
    load(home)
    change.turn_off(home, None, lambda *_: None)


def rows(path: Path, sql: str = "SELECT id, prompt_tokens, response FROM turns ORDER BY id") -> list[Any]:
    """What a query finds, in clear or encrypted."""
    with contextlib.closing(cipher.connect(path, "mode=ro", cipher.key(path))) as db:
        return db.execute(sql).fetchall()


def content(path: Path) -> dict[str, list[Any]]:
    """All rows by table, in clear or encrypted."""
    with contextlib.closing(cipher.connect(path, "mode=ro", cipher.key(path))) as db:
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        return {
            name: sorted(db.execute(f'SELECT * FROM "{name}"').fetchall(), key=str)
            for (name,) in names.fetchall()
        }


def holding(folder: Path, *words: str) -> list[str]:
    """Which files in it hold one of these words, in whatever case."""
    wanted = [word.casefold().encode() for word in words]
    return sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and any(word in _bytes(file) for word in wanted)
    )


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes().lower()
    except FileNotFoundError:  # gone meanwhile
        return b""


@contextlib.contextmanager
def forgotten_keys() -> Iterator[None]:
    """As a process that has not asked for a key yet."""
    kept = dict(vault._known)
    vault._known.clear()
    try:
        yield
    finally:
        vault._known.update(kept)


def is_sqlite(path: Path) -> bool:
    """Whether Python's own SQLite reads it."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True
