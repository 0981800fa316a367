# SPDX-License-Identifier: Apache-2.0
"""Opening a database file: as it is with Python's own SQLite, or through SQLCipher where it is encrypted.

SQLCipher's library is a second SQLite with types of its own, of the same names. It is loaded only where a
file has a key.
"""

from __future__ import annotations

import sqlite3
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from goodbot import config
from goodbot.base.errors import MissingExtraError, StoreError
from goodbot.base.worded import Worded
from goodbot.config import vault
from goodbot.config.layout import DATABASE
from goodbot.config.vault import Vault, VaultRecord, database_key
from goodbot.store.postgres import failures

_MODULE = "sqlcipher3.dbapi2"
_CLEAR = b"SQLite format 3\0"
_AGAIN = {
    "encrypt": Worded("encryption was being turned on: type `goodbot encrypt` to finish it"),
    "decrypt": Worded("encryption was being turned off: type `goodbot decrypt` to finish it"),
    "rekey": Worded("the key was being changed: type `goodbot encrypt --rekey` to finish it"),
}


def errors() -> tuple[type[Exception], ...]:
    """What SQLite raises; of SQLCipher's, and of PostgreSQL's, once that was loaded."""
    other: Any = sys.modules.get(_MODULE)
    return (sqlite3.Error, *((other.Error,) if other else ()), *failures.errors())


def is_clear(path: Path) -> bool | None:
    """Whether a database file is in clear; None where there is none, or an empty one."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_CLEAR))
    except FileNotFoundError:
        return None
    except OSError:
        return True  # SQLite says better why it cannot be read
    return head == _CLEAR if head else None


def key(path: Path) -> bytes | None:
    """The key of a database file that is there or is to be made; None: it is in clear.

    Raises StoreError: there is no such key, or what is there and what the config says do not fit;
    ConfigError.
    """
    found = vault.of(path)
    if found is None and path.with_name(vault.FILE).exists():
        config.load(path.parent.absolute())  # whoever opens it has not read the settings
        found = vault.of(path)
    record = found.record() if found else None
    if found is None or record is None:
        if found and found.settings.enabled and path.name == DATABASE:
            raise StoreError(without_record(path))
        return None
    _require_settled(found, record, path)
    return database_key(found.key(record.key))


def without_record(path: Path) -> str:
    """What is missing where there is no `encryption.json`, and what helps, as a sentence."""
    if is_clear(path) is False:
        missing = (
            "{path} is missing: bring it back, or type `goodbot encrypt --key file:PATH` with a file that "
            "holds the key"
        )
        return Worded(missing, path=path.with_name(vault.FILE))
    return Worded("[encryption] enabled is true, and nothing is encrypted yet: type `goodbot encrypt`")


def _require_settled(found: Vault, record: VaultRecord, path: Path) -> None:
    if record.doing:
        raise StoreError(_AGAIN[record.doing])
    if not found.settings.enabled:
        off = (
            "the data in {home} are encrypted, and [encryption] enabled is not true: set it, or type "
            "`goodbot decrypt`"
        )
        raise StoreError(Worded(off, home=found.home))
    if is_clear(path):
        clear = "{name} is in clear, and encryption is on: type `goodbot encrypt`"
        raise StoreError(Worded(clear, name=path.name))


def connect(path: Path, how: str, key: bytes | None, **more: Any) -> sqlite3.Connection:
    """A connection to the file; `how` is SQLite's (`mode=ro`). Raises what `errors` lists."""
    uri = f"{path.absolute().as_uri()}?{how}"
    if key is None:
        return sqlite3.connect(uri, uri=True, isolation_level=None, **more)
    db = cast("sqlite3.Connection", library().connect(uri, uri=True, isolation_level=None, **more))
    try:
        db.execute("PRAGMA cipher_log_level = NONE")  # it would write to stderr
        db.execute(f'PRAGMA key = "{literal(key)}"')
        db.execute("PRAGMA temp_store = MEMORY")  # what SQLite sorts would lie on the disk in clear
    except BaseException:
        db.close()
        raise
    return db


def literal(key: bytes) -> str:
    """A key as SQLCipher takes it: 256 bits as they are, not a passphrase."""
    return f"x'{key.hex()}'"


def library() -> Any:
    """SQLCipher. Raises MissingExtraError."""
    try:
        return import_module(_MODULE)
    except ImportError:
        raise MissingExtraError(Worded("encryption"), "encryption") from None
