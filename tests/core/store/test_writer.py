# SPDX-License-Identifier: Apache-2.0
"""Rule 1: an operation returns after a FULL commit, and a crowd shares one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import StoreError, StoreFullError
from goodbot.store import Store
from goodbot.store.commit_queue import MAX_BATCH, explain
from goodbot.store.postgres.opened import PostgresStore

from tests import postgres
from tests.core.builders import rows
from tests.postgres import names as on_disk
from tests.support import patience


@pytest.fixture(params=postgres.STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    store = await postgres.opened(request.param, tmp_path / "goodbot.db")
    yield store
    await store.close()


@pytest.fixture
async def file(tmp_path: Path) -> AsyncGenerator[Store]:
    """For what is about a disk of this machine."""
    if postgres.EVERYWHERE:
        pytest.skip("it is about a file")
    store = await Store.open(tmp_path / "goodbot.db")
    yield store
    await store.close()


def put(name: str, *, fails: bool = False) -> Any:
    """An operation that stores a switch, and then fails or not."""

    async def operation(db: Any) -> str:
        await db.execute("INSERT INTO switches VALUES (?, '1')", (name,))
        if fails:
            raise LookupError(name)
        return name

    return operation


async def commits(store: Store) -> list[str]:
    """Every BEGIN and COMMIT that the database itself sees from now on."""
    seen: list[str] = []
    writing: Any = store._writing
    if isinstance(store, PostgresStore):
        real = writing._raw.execute

        async def told(sql: str, *values: Any, **more: Any) -> Any:
            trace(sql)
            return await real(sql, *values, **more)

        writing._raw.execute = told

    def trace(statement: str) -> None:
        if statement.startswith(("BEGIN", "COMMIT")) or statement == "ROLLBACK":
            seen.append(statement.split()[0].removesuffix(";"))

    if not isinstance(store, PostgresStore):
        await writing.set_trace_callback(trace)
    return seen


async def test_a_write_is_committed_when_it_returns(store: Store) -> None:
    seen = await commits(store)
    assert await store.write(put("a")) == "a"
    assert seen == ["BEGIN", "COMMIT"]
    assert on_disk(store) == {"a"}


async def test_a_crowd_shares_one_commit(store: Store) -> None:
    seen = await commits(store)
    names = [f"n{i}" for i in range(MAX_BATCH)]
    assert await asyncio.gather(*(store.write(put(name)) for name in names)) == names
    assert seen.count("COMMIT") <= 2
    assert on_disk(store) == set(names)


async def test_nobody_is_answered_before_the_commit(store: Store) -> None:
    done: list[str] = []

    async def one(name: str) -> None:
        await store.write(put(name))
        done.append(name)
        assert name in on_disk(store)

    await asyncio.gather(*(one(f"n{i}") for i in range(20)))
    assert len(done) == 20


async def test_one_that_fails_does_not_undo_its_neighbours(store: Store) -> None:
    seen = await commits(store)
    results = await asyncio.gather(
        store.write(put("a")),
        store.write(put("b", fails=True)),
        store.write(put("c")),
        store.write(put("a")),
        return_exceptions=True,
    )
    assert results[0] == "a"
    assert isinstance(results[1], LookupError)
    assert results[2] == "c"
    assert isinstance(results[3], StoreError)  # UNIQUE
    assert on_disk(store) == {"a", "c"}
    assert seen == ["BEGIN", "COMMIT"]


async def test_one_that_fails_alone_leaves_nothing(store: Store) -> None:
    seen = await commits(store)
    with pytest.raises(LookupError):
        await store.write(put("a", fails=True))
    assert await store.write(put("b")) == "b"
    assert on_disk(store) == {"b"}
    assert seen == ["BEGIN", "ROLLBACK", "BEGIN", "COMMIT"]


async def test_a_commit_that_fails_answers_nobody_well(file: Store) -> None:
    real = file._writing.commit

    async def full() -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    file._writing.commit = full  # type: ignore[method-assign]
    results = await asyncio.gather(file.write(put("a")), file.write(put("b")), return_exceptions=True)
    assert [type(result) for result in results] == [StoreFullError, StoreFullError]
    assert on_disk(file) == set()
    file._writing.commit = real  # type: ignore[method-assign]
    assert await file.write(put("a")) == "a"


async def test_even_a_failed_rollback_leaves_nobody_waiting(file: Store) -> None:
    async def broken() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    used = file._writing
    used.commit = used.rollback = broken  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        await asyncio.wait_for(file.write(put("a")), patience(5))
    assert on_disk(file) == set()
    assert await asyncio.wait_for(file.write(put("b")), patience(5)) == "b"
    assert file._writing is not used
    assert on_disk(file) == {"b"}


def failing(code: int) -> Any:
    async def fail(*_: Any) -> None:
        error = sqlite3.OperationalError("it failed")
        error.sqlite_errorcode = code
        raise error

    return fail


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_IOERR | 4 << 8])
async def test_a_connection_on_which_the_disk_failed_is_not_used_again(file: Store, code: int) -> None:
    used = file._writing
    used.commit = failing(code)  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="disk failed"):
        await file.write(put("a"))
    assert "disk failed" in file.trouble
    assert await file.write(put("b")) == "b"
    assert file._writing is not used
    assert file.trouble == ""
    assert on_disk(file) == {"b"}
    assert file.path.with_name("goodbot.db-wal").stat().st_size < 40_000, "its log began anew"
    with pytest.raises(ValueError):
        await used.execute("SELECT 1")


async def test_an_operation_that_meets_a_failing_disk_takes_its_batch_with_it(file: Store) -> None:
    results = await asyncio.gather(
        file.write(put("a")),
        file.write(failing(sqlite3.SQLITE_IOERR)),
        file.write(put("c")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [StoreError] * 3
    assert on_disk(file) == set()
    assert await file.write(put("d")) == "d"


async def test_while_it_cannot_be_opened_again_nothing_is_acknowledged_and_it_says_why(file: Store) -> None:
    file._writing.commit = failing(sqlite3.SQLITE_IOERR)  # type: ignore[method-assign]
    away = file.path.with_name("away.db")
    with pytest.raises(StoreError):
        await file.write(put("a"))
    file.path.rename(away)
    for name in ("b", "c"):
        with pytest.raises(StoreError, match="cannot be opened"):
            await file.write(put(name))
        assert file.trouble
    assert not file.path.exists(), "an empty one is never begun in its place"
    away.rename(file.path)
    assert await file.write(put("d")) == "d"
    assert file.trouble == ""
    assert on_disk(file) == {"d"}


async def test_b15_what_sqlite_takes_for_damage_for_a_moment_is_none(file: Store) -> None:
    """SQLite says so of a page that the disk did not give; the file is checked before it is believed."""
    assert await file.write(put("a")) == "a"
    file._writing.commit = failing(sqlite3.SQLITE_CORRUPT)  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="the disk failed, or the file is damaged"):
        await file.write(put("b"))
    assert file.trouble
    assert await file.write(put("c")) == "c"
    assert file.trouble == ""


async def test_a_full_disk_is_no_reason_to_connect_anew(file: Store) -> None:
    used = file._writing
    real, used.commit = used.commit, failing(sqlite3.SQLITE_FULL)  # type: ignore[method-assign]
    with pytest.raises(StoreFullError):
        await file.write(put("a"))
    used.commit = real  # type: ignore[method-assign]
    assert await file.write(put("b")) == "b"
    assert (file._writing, file.trouble) == (used, "")


async def test_what_a_cancelled_caller_began_is_committed(store: Store) -> None:
    task = asyncio.create_task(store.write(put("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.write(put("b"))
    assert on_disk(store) == {"a", "b"}


@pytest.mark.parametrize("kind", postgres.STORES)
async def test_closing_commits_what_is_queued_and_takes_nothing_more(tmp_path: Path, kind: str) -> None:
    store = await postgres.opened(kind, tmp_path / "goodbot.db")
    tasks = [asyncio.create_task(store.write(put(f"n{i}"))) for i in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*tasks) == [f"n{i}" for i in range(300)]
    with pytest.raises(StoreError, match="closed"):
        await store.write(put("late"))
    await store.close()
    assert len(on_disk(store)) == 300


@pytest.mark.parametrize("kind", postgres.STORES)
async def test_nobody_waits_for_ever_when_it_closes_on_a_full_queue(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot.store.commit_queue.MAX_QUEUE", 2)
    monkeypatch.setattr("goodbot.store.commit_queue.MAX_BATCH", 1)
    store = await postgres.opened(kind, tmp_path / "goodbot.db")
    tasks = [asyncio.create_task(store.write(put(f"n{i}"))) for i in range(30)]
    for _ in range(3):
        await asyncio.sleep(0)
    await store.close()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), patience(10))
    stored = {result for result in results if isinstance(result, str)}
    assert stored == on_disk(store)
    assert all(isinstance(result, (str, StoreError)) for result in results)


async def test_reading_cannot_write(store: Store) -> None:
    with pytest.raises(StoreError):
        await rows(store, "INSERT INTO switches VALUES ('a', '1')")


def test_every_error_of_sqlite_becomes_a_sentence() -> None:
    for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR | 2 << 8, sqlite3.SQLITE_CORRUPT, 99):
        error = sqlite3.OperationalError("x")
        error.sqlite_errorcode = code
        assert isinstance(explain(error), StoreError)
    assert isinstance(explain(LookupError("x")), LookupError)
