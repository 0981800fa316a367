"""Rule 1: an operation returns after a FULL commit, and a crowd shares one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.errors import StoreError, StoreFullError
from goodbot.store import Store
from goodbot.store.writer import MAX_BATCH, explain

from tests.core.builders import rows


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
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
    """Every BEGIN and COMMIT that SQLite itself sees from now on."""
    seen: list[str] = []

    def trace(statement: str) -> None:
        if statement.startswith(("BEGIN", "COMMIT")) or statement == "ROLLBACK":
            seen.append(statement.split()[0])

    await store._writing.set_trace_callback(trace)
    return seen


def on_disk(path: Path) -> set[str]:
    """What another process would find now."""
    with sqlite3.connect(path) as other:
        found = {name for (name,) in other.execute("SELECT name FROM switches")}
    other.close()
    return found


async def test_a_write_is_committed_when_it_returns(store: Store) -> None:
    seen = await commits(store)
    assert await store.write(put("a")) == "a"
    assert seen == ["BEGIN", "COMMIT"]
    assert on_disk(store.path) == {"a"}


async def test_a_crowd_shares_one_commit(store: Store) -> None:
    seen = await commits(store)
    names = [f"n{i}" for i in range(MAX_BATCH)]
    assert await asyncio.gather(*(store.write(put(name)) for name in names)) == names
    assert seen.count("COMMIT") <= 2
    assert on_disk(store.path) == set(names)


async def test_nobody_is_answered_before_the_commit(store: Store) -> None:
    done: list[str] = []

    async def one(name: str) -> None:
        await store.write(put(name))
        done.append(name)
        assert name in on_disk(store.path)

    await asyncio.gather(*(one(f"n{i}") for i in range(20)))
    assert len(done) == 20


async def test_one_that_fails_does_not_undo_its_neighbours(store: Store) -> None:
    seen = await commits(store)
    results = await asyncio.gather(
        store.write(put("a")), store.write(put("b", fails=True)), store.write(put("c")),
        store.write(put("a")), return_exceptions=True,
    )  # fmt: skip
    assert results[0] == "a"
    assert isinstance(results[1], LookupError)
    assert results[2] == "c"
    assert isinstance(results[3], StoreError)  # UNIQUE
    assert on_disk(store.path) == {"a", "c"}
    assert seen == ["BEGIN", "COMMIT"]


async def test_a_commit_that_fails_answers_nobody_well(store: Store) -> None:
    real = store._writing.commit

    async def full() -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    store._writing.commit = full  # type: ignore[method-assign]
    results = await asyncio.gather(
        store.write(put("a")), store.write(put("b")), return_exceptions=True
    )
    assert [type(result) for result in results] == [StoreFullError, StoreFullError]
    assert on_disk(store.path) == set()
    store._writing.commit = real  # type: ignore[method-assign]
    assert await store.write(put("a")) == "a"


async def test_even_a_failed_rollback_leaves_nobody_waiting(store: Store) -> None:
    async def broken() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    real = store._writing.rollback
    store._writing.commit = store._writing.rollback = broken  # type: ignore[method-assign]
    for name in ("a", "b"):
        with pytest.raises(StoreError):
            await asyncio.wait_for(store.write(put(name)), 5)
    store._writing.rollback = real  # type: ignore[method-assign]
    await store._writing.rollback()
    assert on_disk(store.path) == set()


async def test_what_a_cancelled_caller_began_is_committed(store: Store) -> None:
    task = asyncio.create_task(store.write(put("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.write(put("b"))
    assert on_disk(store.path) == {"a", "b"}


async def test_closing_commits_what_is_queued_and_takes_nothing_more(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "goodbot.db")
    tasks = [asyncio.create_task(store.write(put(f"n{i}"))) for i in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*tasks) == [f"n{i}" for i in range(300)]
    with pytest.raises(StoreError, match="closed"):
        await store.write(put("late"))
    await store.close()
    assert len(on_disk(store.path)) == 300


async def test_nobody_waits_for_ever_when_it_closes_on_a_full_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot.store.writer.MAX_QUEUE", 2)
    monkeypatch.setattr("goodbot.store.writer.MAX_BATCH", 1)
    store = await Store.open(tmp_path / "goodbot.db")
    tasks = [asyncio.create_task(store.write(put(f"n{i}"))) for i in range(30)]
    for _ in range(3):
        await asyncio.sleep(0)
    await store.close()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    stored = {result for result in results if isinstance(result, str)}
    assert stored == on_disk(store.path)
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
