# SPDX-License-Identifier: Apache-2.0
"""A full disk, a damaged file and a disk that does not give a page are told apart, and told."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from goodbot.base.errors import StoreDamagedError, StoreError, StoreFullError
from goodbot.daemon.http import readiness
from goodbot.store import Store, downgrade, inspection, settings, soundness
from goodbot.store.query import fetch

from tests.core.builders import add_turn, open_bot, rows

DAMAGED = b"\xa5" * 64


async def filled(path: Path, turns: int = 60) -> None:
    store = await Store.open(path)
    for number in range(turns):
        await add_turn(store, f"t{number}")
    await store.close()


def spoil(path: Path) -> str:
    """64 bytes over the head of a page that is in use; the file's hash then."""
    with sqlite3.connect(path) as db:
        [(page,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'")
        [(size,)] = db.execute("PRAGMA page_size")
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(DAMAGED)
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_a_database_that_fails_its_check_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    before = spoil(path)
    with pytest.raises(StoreDamagedError, match="damaged: bring a backup back"):
        await Store.open(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


async def with_a_log(path: Path) -> None:
    """A database with a change in the log beside it, as a process leaves them that is killed."""
    alive = path.with_name("alive.db")
    await filled(alive)
    store = await Store.open(alive)
    await store.write(lambda db: settings.set_switch(db, "late", "x" * 100))
    shutil.copy(alive, path)
    left = alive.with_name("alive.db-wal").read_bytes()
    await store.close()
    spoil(path)  # whoever opens it writes the log into it at the end, so that comes now
    path.with_name(f"{path.name}-wal").write_bytes(left)


async def test_b15_a_log_that_a_crash_left_beside_a_damaged_one_stays(tmp_path: Path) -> None:
    """The start closed its only connection: that wrote the log into the file, and deleted the log.

    So did `goodbot upgrade --back`.
    """
    path, log = tmp_path / "goodbot.db", tmp_path / "goodbot.db-wal"
    await with_a_log(path)
    before = path.read_bytes(), log.read_bytes()
    assert before[1]
    for opening in (lambda: Store.open(path), lambda: downgrade.given_up(tmp_path)) * 2:
        with pytest.raises(StoreDamagedError, match="damaged: bring a backup back"):
            await opening()
        assert log.exists()
        assert (path.read_bytes(), log.read_bytes()) == before


async def test_b15_the_log_of_another_program_stays(tmp_path: Path) -> None:
    path, log, theirs = (tmp_path / name for name in ("goodbot.db", "goodbot.db-wal", "theirs.db"))
    db = sqlite3.connect(theirs, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("CREATE TABLE theirs (x)")
        shutil.copy(theirs, path)
        shutil.copy(tmp_path / "theirs.db-wal", log)
    finally:
        db.close()
    before = path.read_bytes(), log.read_bytes()
    assert before[1]
    with pytest.raises(StoreError, match="not a goodbot database"):
        await Store.open(path)
    assert log.exists()
    assert (path.read_bytes(), log.read_bytes()) == before


async def test_a_large_one_is_checked_behind_the_start_and_then_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    before = spoil(path)
    monkeypatch.setattr(soundness, "AT_ONCE", 0)
    store = await Store.open(path)
    try:
        assert store.looking is not None
        await store.looking
        assert "damaged: bring a backup back" in store.trouble
        for _ in range(2):
            with pytest.raises(StoreError, match="damaged: bring a backup back"):
                await store.write(lambda db: settings.set_switch(db, "a", "b"))
    finally:
        await store.close()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


class Slow:
    """A check that goes on until `go` is set, and then is the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self._real = soundness.require_sound
        monkeypatch.setattr(soundness, "AT_ONCE", 0)
        monkeypatch.setattr(soundness, "require_sound", self)

    async def __call__(self, db: aiosqlite.Connection, path: Path) -> None:
        self.began.set()
        await self.go.wait()
        await self._real(db, path)


async def much(store: Store, name: str) -> None:
    """More than SQLite keeps in its log by itself."""
    for number in range(30):
        await store.write(
            lambda db, n=number: settings.set_switch(db, f"{name}{n}", os.urandom(100_000).hex())
        )


async def test_26_11_a_large_one_takes_ratings_and_is_not_written_to_before_its_check_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its damage was found while its pages were already being replaced."""
    path = tmp_path / "goodbot.db"
    await filled(path)
    before, slow = spoil(path), Slow(monkeypatch)
    store = await Store.open(path)
    await slow.began.wait()
    await much(store, "early")
    assert await store.read(lambda db: settings.switch(db, "early29")), "it is stored: in the log"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    with pytest.raises(StoreError, match="still being checked"):
        await store.compact()
    slow.go.set()
    assert store.looking is not None
    await store.looking
    with pytest.raises(StoreError, match="damaged: bring a backup back"):
        await store.write(lambda db: settings.set_switch(db, "a", "b"))
    await store.close()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize("ends", ["before its check", "after it"])
async def test_26_11_what_is_stored_while_a_sound_one_is_checked_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    before, slow = hashlib.sha256(path.read_bytes()).hexdigest(), Slow(monkeypatch)
    store = await Store.open(path)
    await slow.began.wait()
    await much(store, "early")
    if ends != "before its check":
        slow.go.set()
        assert store.looking is not None
        await store.looking
        await much(store, "late")
        assert hashlib.sha256(path.read_bytes()).hexdigest() != before, "the log is written into it again"
        await store.compact()
        await store.close()
        assert not path.with_name("goodbot.db-wal").exists()
    else:
        closing = asyncio.create_task(store.close())
        slow.go.set()
        await closing
    again = await Store.open(path)
    assert await again.read(lambda db: settings.switch(db, "early29"))
    await again.close()


async def test_the_end_does_not_wait_for_the_check_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    monkeypatch.setattr(soundness, "AT_ONCE", 0)
    began, ended = asyncio.Event(), list[str]()
    long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 1 OFFSET ?"

    async def slow(db: aiosqlite.Connection, _: Path) -> None:
        began.set()
        try:
            await fetch(db, long, (20_000_000,))
            ended.append("it was waited for")
        except sqlite3.OperationalError as error:
            ended.append(str(error))
            raise

    monkeypatch.setattr(soundness, "require_sound", slow)
    store = await Store.open(path)
    await began.wait()
    await store.close()
    assert ended == ["interrupted"]
    assert store.trouble == ""


async def test_whoever_looks_at_a_damaged_one_is_told_what_to_do_not_to_look_again(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    with sqlite3.connect(path) as db:
        [(size,)] = db.execute("PRAGMA page_size")
    db.close()
    with path.open("r+b") as file:  # the list of tables itself
        file.seek(100)
        file.write(DAMAGED[: size - 100])
    with pytest.raises(StoreDamagedError, match="bring a backup back") as raised:
        async with inspection.look(path) as looked:
            await inspection.damage(looked)
    assert "goodbot doctor" not in str(raised.value)


async def test_a_page_that_turns_out_damaged_while_it_runs_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path)
    store = await Store.open(path)
    try:
        spoil(path)
        with pytest.raises(StoreError, match="damaged: bring a backup back"):
            await rows(store, "SELECT * FROM turns NOT INDEXED")
        assert "damaged" in store.trouble
    finally:
        await store.close()


async def test_b15_a_read_that_fails_for_a_moment_is_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite makes SQLITE_CORRUPT of an EIO while it reads."""
    store = await Store.open(tmp_path / "goodbot.db")

    async def fails(db: aiosqlite.Connection) -> None:
        raise corrupt()

    try:
        with pytest.raises(StoreError, match="failed for a moment while the database was read"):
            await store.read(fails)
        assert store.trouble == ""
        monkeypatch.setattr(Path, "open", eio)
        with pytest.raises(StoreError, match="the disk fails while the database is read"):
            raise await soundness.damage(corrupt(), store.path) or AssertionError
    finally:
        await store.close()


def corrupt() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def eio(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


async def test_b15_a_start_without_space_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "goodbot.db"
    await filled(path, 1)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert soundness.without_space(error, path) is None, "there is space"
    real = os.statvfs(tmp_path)

    def full(_: Any) -> os.statvfs_result:
        return os.statvfs_result((*real[:4], 0, *real[5:]))

    async def no_shm(_: Any) -> None:
        raise error

    monkeypatch.setattr("goodbot.store.soundness.os.statvfs", full)
    monkeypatch.setattr("goodbot.store.set_pragmas", no_shm)
    with pytest.raises(StoreFullError, match=f"the disk of {tmp_path} is full: free some space"):
        await Store.open(path)


async def test_b9_a_full_disk_is_in_status_readyz_and_one_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bot(tmp_path) as bot:
        store = bot.store
        await pages(store, 0)
        caplog.set_level(logging.WARNING, "goodbot.store")
        for number in range(20):
            with pytest.raises(StoreFullError):
                await add_turn(store, f"t{number}", response="x" * 20_000)
        assert "the disk is full" in store.trouble
        assert "the disk is full" in (await bot.status())["store"]
        said = [record for record in caplog.records if "disk is full" in record.getMessage()]
        assert len(said) == 1, "one line a minute"
        assert await readiness.store_answers(bot.app), "no reason for a watchdog to end it"
        await pages(store, 1_000_000)
        assert await readiness.store_takes(bot.app), "the look itself finds that there is space"
        assert store.trouble == ""
        assert (await bot.status())["store"] == "ok"


async def test_b9_it_stays_seen_while_the_disk_is_full(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.store._writer.full = "the disk is full"

        async def full(db: aiosqlite.Connection) -> None:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settings, "set_switch", lambda db, *_: full(db))
            assert not await readiness.store_takes(bot.app)
        assert bot.store.trouble


async def pages(store: Store, most: int) -> None:
    """The file may have so many pages; none more than it has, for 0."""

    async def operation(db: aiosqlite.Connection) -> None:
        async with db.execute(f"PRAGMA max_page_count = {most or 1}"):
            pass

    await store._writer.alone(operation)


async def test_what_is_deleted_is_wiped_once_nobody_reads_one_moment_any_more(tmp_path: Path) -> None:
    """Else the log could not be emptied, and grew by the whole database with each try."""
    path = tmp_path / "goodbot.db"
    await filled(path)
    store = await Store.open(path)
    begun, go = asyncio.Event(), asyncio.Event()

    async def read(_: object) -> None:
        begun.set()
        await go.wait()

    reading = asyncio.create_task(store.snapshot(read))
    await begun.wait()
    log = path.with_name("goodbot.db-wal")
    before = log.stat().st_size
    with pytest.raises(StoreError, match="still being read"):
        await store.compact()
    assert log.stat().st_size == before
    go.set()
    await reading
    await store.compact()
    await store.close()
