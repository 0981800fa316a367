# SPDX-License-Identifier: Apache-2.0
"""Connecting to SQLite, with the settings that the store's promises hang on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite

from goodbot.api.rewards import RewardPolicy
from goodbot.base.errors import StoreError
from goodbot.base.topics import holds
from goodbot.base.worded import Worded
from goodbot.store import cipher, refusals, teaching
from goodbot.store.query import fetch, first

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit that returned survives a power cut
    "foreign_keys": 1,
    "trusted_schema": 0,
    "secure_delete": 1,  # what is deleted is overwritten: nothing of it stays in the free space
}
BUSY_SECONDS = 5.0
"""How long another program may hold the database before a write fails."""


async def connect(
    path: Path, how: str = "mode=rwc", policy: RewardPolicy | None = None
) -> aiosqlite.Connection:
    """A connection to the file; `how` is SQLite's: `mode=ro`, `mode=rw`, or `rwc` to create it.

    `policy` says what teaches. Raises what `cipher.errors` lists, and StoreError where its key is not there.
    """
    key = cipher.key(path)
    if how == "mode=rwc":
        _private(path)

    def opened() -> sqlite3.Connection:  # a `partial` would show the key: aiosqlite logs what it is given
        # see `inline` for the last one
        return cipher.connect(path, how, key, timeout=BUSY_SECONDS, check_same_thread=False)

    connection = aiosqlite.Connection(opened, iter_chunk_size=64)
    try:
        db = await connection
        functions = (
            ("folded", 1, _folded),
            ("holds_word", 2, _holds),
            ("refusal_mac", 2, refusals.function(path.parent)),
            ("teaches", 1, teaching.function(policy)),
        )
        for name, values, function in functions:
            await db.create_function(name, values, function, deterministic=True)  # pyright: ignore[reportUnknownMemberType]
        return db
    except BaseException:
        connection.stop()  # pyright: ignore[reportUnknownMemberType]
        # Its thread still has a word for this event loop, which must not be closed by then. It ends by
        # itself, however busy the machine is; whoever cancels us meanwhile does not make it quicker.
        thread: Any = getattr(connection, "_thread", connection)
        ended = asyncio.ensure_future(asyncio.to_thread(thread.join))
        cancelled = False
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:  # by Ctrl-C perhaps, which must not be taken for a file that cannot be read
            raise asyncio.CancelledError from None
        raise


async def put_away(*opened: aiosqlite.Connection) -> None:
    """Close what failed over a file that may not be sound: what writes first, then what only reads.

    Whoever closes last writes the log into the file and deletes it, which one that only reads cannot; it
    is the last once it has read. So a log that a crash has left stays, and the file is as it was found.
    """
    try:
        for db in opened[1:]:
            with contextlib.suppress(*cipher.errors()):  # what is wrong was seen by the other one
                await fetch(db, "PRAGMA schema_version")
    finally:  # a thread left open would keep the process alive for ever
        for db in opened:
            await db.close()


def _folded(text: str | None) -> str | None:
    """SQL `folded(text)`: without upper and lower case, in every script; SQLite's own knows ASCII."""
    return None if text is None else text.casefold()


def _holds(text: str | None, word: str) -> bool:
    """SQL `holds_word(text, word)`: whether it is one of those by which topics are found."""
    return text is not None and holds(text, word)


def _private(path: Path) -> None:
    """Make the file before SQLite does: the files of its log take over who may read it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return  # it is there, or SQLite says better why it cannot be made


async def set_pragmas(db: aiosqlite.Connection) -> None:
    """Set the settings that the promises hang on, and read them back: some are silently ignored."""
    for name, value in PRAGMAS.items():
        await fetch(db, f"PRAGMA {name} = {value}")
        row = first(await fetch(db, f"PRAGMA {name}"))
        if row is None or row[0] != value:
            refused = (
                "SQLite refused {setting} (it says {answer}): is the state directory on a network file "
                "system?"
            )
            answer = row[0] if row else Worded("nothing")
            raise StoreError(Worded(refused, setting=f"{name}={value}", answer=answer))
