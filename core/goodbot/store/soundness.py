# SPDX-License-Identifier: Apache-2.0
"""Whether the database's file is damaged, or only could not be read just now.

SQLite calls a page damaged that the disk did not give (EIO), so its word alone is no reason to bring a
backup back: the file is read once more, as plain bytes and by `quick_check`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import aiosqlite

from goodbot.base.errors import StoreDamagedError, StoreError, StoreFullError
from goodbot.base.worded import Worded
from goodbot.config.layout import no_space
from goodbot.store import cipher
from goodbot.store.query import fetch, first

AT_ONCE = 64 * 1024 * 1024
"""Bytes of a database that is checked before goodbot starts on it; a larger one is, behind it."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PART = 1 << 20
_LITTLE = 1 << 20
_DAMAGED = Worded("the database file is damaged: bring a backup back (`goodbot restore`)")


def unread(path: Path) -> str:
    """Why the disk does not give the whole file, empty if it does."""
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            with file.open("rb", buffering=0) as opened:
                while opened.read(_PART):
                    pass
        except FileNotFoundError:
            continue
        except OSError as error:
            return error.strerror or type(error).__name__
    return ""


async def require_sound(db: aiosqlite.Connection, path: Path) -> None:
    """Raise StoreDamagedError for a damaged file, and StoreError for one that the disk does not give."""
    try:
        found = first(await fetch(db, "PRAGMA quick_check(1)"))
        said = "" if found == ("ok",) else str(found[0] if found else "no answer")
    except cipher.errors() as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
            raise
        said = str(error)
    if said:
        raise await _which(said, path)


async def damage(error: Exception, path: Path) -> StoreError | None:
    """What it is that SQLite calls damage at the start; None for another error."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # Its key was found to be the right one: of an encrypted file it means damage that it is no database.
    known = code == sqlite3.SQLITE_CORRUPT or (
        code == sqlite3.SQLITE_NOTADB and not isinstance(error, sqlite3.Error)
    )
    return await _which(str(error), path) if known else None


async def _which(said: str, path: Path) -> StoreError:
    if why := await asyncio.to_thread(unread, path):
        fails = "the disk fails while the database is read ({why}): see to the disk"
        return StoreError(Worded(fails, why=why))
    found = " ".join(said.split())[:200]
    return StoreDamagedError(Worded("{reason} ({error})", reason=_DAMAGED, error=found))


def without_space(error: Exception, path: Path) -> StoreFullError | None:
    """That the disk is full, where SQLite calls it an input/output error of a file it could not make."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return None
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return None
    none_left = room.f_bavail * room.f_frsize < _LITTLE or (room.f_files and not room.f_favail)
    return StoreFullError(no_space(path.parent)) if none_left else None
