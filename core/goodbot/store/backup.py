# SPDX-License-Identifier: Apache-2.0
"""A copy of the database: one moment of it, checked row by row, for its owner's eyes only.

`VACUUM INTO` writes what is there and nothing that was deleted, so a forgotten word is in no copy
that is made afterwards. It reads, so that it may run beside the daemon's one writer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from goodbot.base.durable import sync
from goodbot.base.errors import NewerDataError, StoreError, StoreFullError
from goodbot.base.worded import Worded
from goodbot.config.layout import APPLICATION_ID
from goodbot.store import cipher
from goodbot.store.commit_queue import explain

_MARGIN = 1024 * 1024
"""Bytes that must stay free on the disk."""
_BUSY_SECONDS = 5.0
TRAVELS = frozenset(
    (
        *("adapters", "aliases", "audit", "canaries", "channels", "comparisons", "cursors", "events"),
        *("fixed_answers", "grants", "judgements", "labels", "links", "messages", "note_ratings"),
        *("note_trials", "notes", "pairs", "pointers", "predicted", "predictions", "quarantines"),
        *("queue_answers", "queue_shares", "queues", "rating_requests", "retries", "run_items"),
        *("run_notes", "runs", "set_aside", "shares", "shift_examples", "shifts", "switches", "talkers"),
        *("told", "traces", "turns", "waits", "withheld"),
    )
)
"""The tables whose rows are in a backup."""
STRIPPED = frozenset(("connector_values", "inbox"))
"""Those of which a part is."""
EMPTIED = frozenset(("codes", "join_requests", "refused"))
"""Those of which nothing is; neither is anything of a table that is named nowhere here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """A database file that was found whole. `rows` counts them by table."""

    path: Path
    schema: int
    size: int
    rows: Mapping[str, int]


def copy(source: Path, target: Path, *, still: bool = False) -> Copy:
    """Write a verified copy of the database `source` to `target`, which it replaces in one step.

    `still`: nobody writes to `source` meanwhile, and the copy must have exactly its rows.
    Raises StoreError (damaged, not ours), StoreFullError; then `target` is as it was.
    """
    partial = target.with_name(f"{target.name}.partial")
    with explained(target), contextlib.closing(_open(source, _still(source, still))) as db:
        require_space(target.parent, size(db))
        expected = rows_of(db) if still else None
        try:
            partial.unlink(missing_ok=True)
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            db.execute("VACUUM INTO ?", (str(partial.absolute()),))
            found = verify(partial)
            if expected is not None and expected != found.rows:
                raise StoreError(Worded("the copy of the database lacks rows: try again"))
            sync(partial)
            partial.replace(target)
            sync(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    return Copy(path=target, schema=found.schema, size=found.size, rows=found.rows)


def verify(path: Path) -> Copy:
    """Read all of a database that nobody has open. Raises StoreError for what is not whole."""
    return whole(path, cipher.key(path))


def whole(path: Path, key: bytes | None) -> Copy:
    """The same with the key that it is said to have; None: it is in clear. Raises StoreError."""
    with explained(path), contextlib.closing(_opened(path, "mode=ro&immutable=1", key)) as db:
        if _number(db, "application_id") != APPLICATION_ID:
            raise StoreError(Worded("{name} is not a goodbot database", name=path.name))
        _require_whole(db, path)
        return Copy(path=path, schema=_number(db, "user_version"), size=path.stat().st_size, rows=rows_of(db))


def _require_whole(db: sqlite3.Connection, path: Path) -> None:
    wrong = [str(row[0]) for row in db.execute("PRAGMA integrity_check(1)")]
    if wrong != ["ok"]:
        raise StoreError(Worded("the database {name} is damaged: {why}", name=path.name, why=wrong[0][:200]))
    if db.execute("PRAGMA foreign_key_check").fetchone():
        lost = Worded("rows point to missing rows")
        raise StoreError(Worded("the database {name} is damaged: {why}", name=path.name, why=lost))


def strip(path: Path, values: Mapping[str, Sequence[str]]) -> None:
    """Take out of a copy what must not travel: it lets somebody in, or is done once it is read.

    Those are codes, who asks to be let in, any table that nobody has said travels, what was still to be
    done (a command under way would be done again), what receipts say (they quote answers, and codes), and of
    what connectors keep all that is not among `values`: patterns of keys, by connector. Nothing of it stays
    in the file's free space. Raises StoreError.
    """
    with explained(path), contextlib.closing(_open(path, "mode=rw")) as db:
        db.execute("PRAGMA secure_delete = 1")
        db.execute("BEGIN IMMEDIATE")
        for table in _tables(db):
            if table not in TRAVELS | STRIPPED:
                db.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608
        db.execute(
            "UPDATE inbox SET payload = '', receipt = json_remove(json_set(receipt, '$.x', ''), '$.r')"
        )
        for connector, key in db.execute("SELECT connector, key FROM connector_values").fetchall():
            if not any(fnmatchcase(key, pattern) for pattern in values.get(connector, ())):
                db.execute("DELETE FROM connector_values WHERE (connector, key) = (?, ?)", (connector, key))
        db.execute("COMMIT")


def require_schema(found: int, known: int) -> None:
    """Raise NewerDataError for data that this version cannot read."""
    if found > known:
        newer = (
            "the data is from a newer goodbot (schema {found}, this one knows {known}): install that version "
            "again, or run `goodbot upgrade --back` with the newer one"
        )
        raise NewerDataError(Worded(newer, found=found, known=known))


def beside(path: Path, schema: int) -> Path:
    """Where the copy lies that is made of `path` before its schema changes."""
    return path.with_name(f"{path.name}.schema-{schema}.bak")


def before_change(path: Path, schema: int) -> Copy:
    """The copy to go back to, made before the schema changes. Raises StoreError; nothing changed."""
    with explained(path), contextlib.closing(_open(path, "mode=ro")) as db:
        _require_whole(db, path)
        # The copy, and the changed pages in the write-ahead log.
        require_space(path.parent, 2 * size(db))
    return copy(path, beside(path, schema), still=True)


def expire(path: Path, before: float) -> list[Path]:
    """Delete the copies beside the database that are older; their words outlive no forgetting.

    Half of one, too, that a killed process has left.
    """
    gone: list[Path] = []
    for found in sorted(path.parent.glob(f"{path.name}.schema-*.bak*")):
        if found.stat().st_mtime < before:
            found.unlink(missing_ok=True)
            gone.append(found)
    return gone


def count(path: Path) -> Mapping[str, int]:
    """Rows by table of a database that nobody writes to. Raises StoreError."""
    with explained(path), contextlib.closing(_open(path, _still(path))) as db:
        return rows_of(db)


def adapters(path: Path) -> list[tuple[str, str]]:
    """Directory and sha256 of every adapter whose files a copy's rows speak of."""
    with explained(path), contextlib.closing(_open(path, "mode=ro&immutable=1")) as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info(adapters)")}
        kept = "WHERE erased_at IS NULL" if "erased_at" in columns else ""
        found = db.execute(f"SELECT directory, sha256 FROM adapters {kept} ORDER BY version")  # noqa: S608
        return [(str(directory), str(sha256)) for directory, sha256 in found]


def size(db: sqlite3.Connection) -> int:
    """Bytes of the whole database."""
    return _number(db, "page_count") * _number(db, "page_size")


def require_space(directory: Path, needed: int) -> None:
    """Raise StoreFullError unless so many bytes, and some more, are free there."""
    free = shutil.disk_usage(directory).free
    if free < needed + _MARGIN:
        full = (
            "{needed} are needed in {path} and {free} are free: free some space and try again; nothing was "
            "changed"
        )
        needs, has = megabytes(needed + _MARGIN), megabytes(free)
        raise StoreFullError(Worded(full, needed=needs, path=directory, free=has))


def megabytes(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


@contextlib.contextmanager
def explained(path: Path) -> Generator[None]:
    """What SQLite and the file system raise, as a sentence: StoreError, StoreFullError."""
    try:
        yield
    except cipher.errors() as error:
        raise explain(error) from error
    except OSError as error:
        wrong = Worded("{path}: {why}", path=error.filename or path, why=error.strerror or str(error))
        raise StoreError(wrong) from error


def _still(path: Path, still: bool = True) -> str:
    """How to read a file that nobody writes to: SQLite would make the log's files for a reader."""
    log = path.with_name(f"{path.name}-wal")
    logged = log.exists() and log.stat().st_size > 0
    return "mode=ro&immutable=1" if still and not logged else "mode=ro"


def _open(path: Path, how: str) -> sqlite3.Connection:
    return _opened(path, how, cipher.key(path))


def _opened(path: Path, how: str, key: bytes | None) -> sqlite3.Connection:
    db = cipher.connect(path, how, key, timeout=_BUSY_SECONDS)
    try:
        db.execute("PRAGMA trusted_schema = 0")  # the file may come from anybody
    except BaseException:
        db.close()
        raise
    return db


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def rows_of(db: sqlite3.Connection) -> dict[str, int]:
    """How many rows each table has."""
    counts: dict[str, int] = {}
    for name in _tables(db):
        counts[name] = db.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]  # noqa: S608
    return counts


def _tables(db: sqlite3.Connection) -> list[str]:
    found = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    return [str(name) for (name,) in found.fetchall()]


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
