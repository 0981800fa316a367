# SPDX-License-Identifier: Apache-2.0
"""A database file written anew under another key, or in clear: beside itself, and in its place in one step.

Killed at any point, the file is what it was or what it was to be; done again, it goes on.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from goodbot.base import durable
from goodbot.base.errors import StoreDamagedError, StoreError
from goodbot.base.worded import Worded
from goodbot.config.layout import APPLICATION_ID
from goodbot.store import backup, cipher

_STEPS = 100_000
"""Steps of SQLite's machine between two looks at how far it is."""


def key_of(path: Path, keys: Sequence[bytes]) -> bytes | None:
    """Which of these keys opens the file; None: it is in clear, or empty. Raises StoreDamagedError."""
    if cipher.is_clear(path) is not False:
        return None
    for key in keys:
        with contextlib.closing(cipher.connect(path, "mode=ro", key)) as db:
            try:
                db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except cipher.errors():
                continue
            return key
    damaged = "{name} is damaged, or another key encrypted it: bring a backup back"
    raise StoreDamagedError(Worded(damaged, name=path.name))


def convert(path: Path, old: bytes | None, new: bytes | None, told: Callable[[float], None]) -> None:
    """Rewrite a database that nobody has open; `told` hears the share that is done.

    None as a key is none: in clear. Raises StoreError, StoreFullError, MissingExtraError; then it is as
    it was.
    """
    partial = path.with_name(f"{path.name}.new")
    with backup.explained(path):
        try:
            sweep(path)
            with contextlib.closing(_opened(path, old)) as db:
                backup.require_space(path.parent, backup.size(db))
                if db.execute("PRAGMA journal_mode = delete").fetchone()[0] != "delete":
                    used = Worded("another program has {name} open: end it, and try again", name=path.name)
                    raise StoreError(used)
                os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                expected = _export(db, path, partial, new, told)
            if backup.whole(partial, new).rows != expected:
                raise StoreError(Worded("what was written of {name} lacks rows: try again", name=path.name))
            durable.sync(partial)
            partial.replace(path)
            durable.sync(path.parent)
        except BaseException:
            sweep(path)
            raise


def sweep(path: Path) -> None:
    """Remove what a killed `convert` of this file has left. Raises OSError."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(f"{path.name}.new{ending}").unlink(missing_ok=True)


def _export(
    db: sqlite3.Connection, path: Path, partial: Path, new: bytes | None, told: Callable[[float], None]
) -> dict[str, int]:
    """Copy all to the file `partial`; returns its rows by table."""
    whole = max(1, path.stat().st_size)

    def look() -> int:
        told(min(1.0, partial.stat().st_size / whole))
        return 0

    schema = db.execute("PRAGMA user_version").fetchone()[0]
    db.set_progress_handler(look, _STEPS)
    key = "" if new is None else cipher.literal(new)
    db.execute("ATTACH ? AS anew KEY ?", (str(partial.absolute()), key))
    db.execute("SELECT sqlcipher_export('anew')").fetchall()
    db.execute(f"PRAGMA anew.application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA anew.user_version = {int(schema)}")
    db.set_progress_handler(None, 0)
    rows = backup.rows_of(db)
    db.execute("DETACH anew")
    return rows


def _opened(path: Path, key: bytes | None) -> sqlite3.Connection:
    """Through SQLCipher also where it is in clear: only that can write the other kind."""
    if key is not None:
        return cipher.connect(path, "mode=rw", key)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    db: sqlite3.Connection = cipher.library().connect(uri, uri=True, isolation_level=None)
    db.execute("PRAGMA temp_store = MEMORY")
    return db
