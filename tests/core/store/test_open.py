# SPDX-License-Identifier: Apache-2.0
"""Opening: the settings that durability hangs on, and what is not ours to open."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from goodbot.base.errors import NewerDataError, StoreError
from goodbot.store import Store
from goodbot.store import connection as module
from goodbot.store.migrate import APPLICATION_ID, migrations

from tests.core.builders import rows
from tests.support import patience


async def pragma(store: Store, name: str) -> object:
    async with store._writing.execute(f"PRAGMA {name}") as found:
        row = await found.fetchone()
    return row[0] if row else None


@pytest.fixture(autouse=True)
def no_threads_left() -> object:
    """A connection that was not closed would keep the process alive for ever."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=patience(5))
        assert not thread.is_alive(), thread


async def test_nobody_else_can_read_it_from_its_first_moment(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        store = await Store.open(tmp_path / "goodbot.db")
    finally:
        os.umask(umask)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    await store.close()
    assert modes == dict.fromkeys(("goodbot.db", "goodbot.db-wal", "goodbot.db-shm"), 0o600)


async def test_the_settings_are_what_they_must_be(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    store = await Store.open(path)
    try:
        assert await pragma(store, "journal_mode") == "wal"
        assert await pragma(store, "synchronous") == 2
        assert await pragma(store, "foreign_keys") == 1
        assert await rows(store, "PRAGMA query_only") == [(1,)]
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        await store.close()
    assert not path.with_name("goodbot.db-wal").exists()  # the writer's close checkpoints


class Stubborn:
    """A connection that says what the file system made of the settings."""

    def __init__(self, **says: object) -> None:
        self.says = {**module.PRAGMAS, **says}

    async def execute_fetchall(self, sql: str, parameters: object = ()) -> list[tuple[object]]:
        value = self.says[sql.removeprefix("PRAGMA ").partition(" ")[0]]
        return [] if value is None else [(value,)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("synchronous", 1),
        ("synchronous", 0),
        ("journal_mode", "delete"),
        ("foreign_keys", 0),
        ("trusted_schema", None),
    ],
)
async def test_a_setting_that_does_not_hold_is_refused(name: str, said: object) -> None:
    with pytest.raises(StoreError, match=name):
        await module.set_pragmas(Stubborn(**{name: said}))  # type: ignore[arg-type]
    await module.set_pragmas(Stubborn())  # type: ignore[arg-type]


async def test_data_of_a_newer_goodbot_are_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerDataError) as error:
        await Store.open(path)
    assert error.value.exit_code == 78
    assert path.read_bytes() == before


@pytest.mark.parametrize("application_id", [0, 0x0F055112])
async def test_the_database_of_another_program_is_refused_and_untouched(
    tmp_path: Path, application_id: int
) -> None:
    path = tmp_path / "goodbot.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {application_id}")
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a goodbot database"):
        await Store.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4080])
async def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "goodbot.db"
    path.write_bytes(content)
    with pytest.raises(StoreError):
        await Store.open(path)


async def test_a_directory_in_its_place_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        await Store.open(tmp_path)
    with pytest.raises(StoreError):
        await Store.open(tmp_path / "none" / "goodbot.db")


async def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "goodbot.db"
    await (await Store.open(path)).close()
    steps = migrations()
    broken = (len(steps) + 1, "CREATE TABLE half (x);\nCREATE TABLE half (x);")
    # The package's attribute `migrate` is the function; the module is meant.
    migrate = importlib.import_module("goodbot.store.migrate")
    monkeypatch.setattr(migrate, "migrations", lambda: [*steps, broken])
    with pytest.raises(StoreError):
        await Store.open(path)
    monkeypatch.undo()
    store = await Store.open(path)
    try:
        assert await rows(store, "SELECT 1 FROM sqlite_schema WHERE name = 'half'") == []
        assert await pragma(store, "user_version") == len(steps)
    finally:
        await store.close()


@pytest.mark.parametrize("slow", ["opening", "setting up"])
async def test_who_is_stopped_while_it_opens_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """It would have a word for an event loop that is closed by then, and say so on the screen."""
    begun = threading.Event()
    opened: Any = sqlite3.connect

    def late(*args: Any, **more: Any) -> Any:
        begun.set()
        time.sleep(0.5)
        return opened(*args, **more)

    async def never(*_: Any, **__: Any) -> None:
        begun.set()
        await asyncio.sleep(3600)

    if slow == "opening":
        monkeypatch.setattr(sqlite3, "connect", late)
    else:
        monkeypatch.setattr(aiosqlite.Connection, "create_function", never)
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    opening = asyncio.create_task(module.connect(tmp_path / "goodbot.db"))
    await asyncio.to_thread(begun.wait)
    opening.cancel()
    await asyncio.sleep(0)
    opening.cancel()  # as a second Ctrl-C does
    with pytest.raises(asyncio.CancelledError):
        await opening
    mine = [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    assert mine == []


async def test_ctrl_c_while_a_missing_file_is_put_away_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came while the thread of a connection that failed was waited for, and only the failure was seen."""
    waiting, go_on = asyncio.Event(), threading.Event()
    to_thread = asyncio.to_thread

    async def slowly(join: Any) -> None:
        waiting.set()
        await to_thread(go_on.wait)
        await to_thread(join)

    monkeypatch.setattr(asyncio, "to_thread", slowly)
    task = asyncio.create_task(module.connect(tmp_path / "none.db", "mode=ro"))
    await waiting.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
