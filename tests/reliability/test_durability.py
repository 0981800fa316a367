# SPDX-License-Identifier: Apache-2.0
"""I1 and I2 under fire: killed, locked out, without space. What was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from goodbot.base.errors import StoreError
from goodbot.store import Store, ledger

from tests import postgres
from tests.core.builders import add_turn, check_store, rate, rows, until
from tests.reliability.kills import KILLS, asked, each
from tests.reliability.rater import URL, make, parse
from tests.support import patience

TURNS = 12
USUAL = 20
CYCLES = KILLS or USUAL
EVENTS = 1200
MOST = 90
"""Events that are sent before a kill, beside a few that are sent again."""


def events(count: int, chance: random.Random) -> dict[str, str]:
    """Lines by event id: ratings of a few turns from a few sources, some taken back."""
    lines: dict[str, str] = {}
    for number in range(count):
        source = chance.choice(["reaction:+", "reaction:-", "command"])
        value = chance.choice(["1", "-1", "1", "-1", "undo"])
        turn = f"t{chance.randrange(TURNS)}"
        lines[f"e{number}"] = f"e{number} {turn} {chance.randrange(10**6)} {value} {source}\n"
    return lines


@contextlib.asynccontextmanager
async def rater(path: Path, *more: str, url: str = "") -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process of `tests.reliability.rater`; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.reliability.rater",
        str(path),
        *more,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, URL: url},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def feed(process: asyncio.subprocess.Process, lines: list[str], awake: Callable[[], bool]) -> None:
    """A few lines, and the rest bit by bit once it is `awake`, so that it takes many commits."""
    assert process.stdin is not None
    try:
        for number, line in enumerate(lines):
            process.stdin.write(line.encode())
            await process.stdin.drain()
            if number > 4:
                await until(lambda: awake() or process.returncode is not None)
            if number % 4 == 0:
                await asyncio.sleep(0.0005)
    except ConnectionError:
        pass  # it was killed


async def collect(process: asyncio.subprocess.Process, acked: set[str]) -> None:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.endswith(b"\n"):
            assert not line.startswith(b"!"), line
            acked.add(line.decode().strip())


# There must be some left for the last kill, however many each of them lets through.
@pytest.mark.parametrize(
    ("kind", "cycles", "count"),
    [
        ("sqlite", CYCLES, EVENTS + MOST * max(0, CYCLES - USUAL)),
        ("postgres", KILLS or 3, MOST * (KILLS or 3)),
    ],
)
async def test_killed_at_any_moment_it_has_what_it_acknowledged_exactly_once(
    tmp_path: Path, kind: str, cycles: int, count: int
) -> None:
    chance = random.Random(7)
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path) if kind == "postgres" else ""
    store = await postgres.opened(kind, path)
    for number in range(TURNS):
        await add_turn(store, f"t{number}")
    await store.close()
    lines = events(count, chance)
    acked: set[str] = set()
    sent = kills = halfway = 0
    while kills < cycles or len(acked) < len(lines):
        # All that is not acknowledged is sent again, and a few that are.
        size = MOST if kills < cycles else len(lines)
        again = [line for id_, line in lines.items() if id_ not in acked][:size]
        again += chance.sample(list(lines.values()), 10)
        sent += len(again)
        before = len(acked)
        async with rater(path, url=url) as process, asyncio.TaskGroup() as group:
            group.create_task(collect(process, acked))
            feeding = group.create_task(feed(process, again, lambda b=before: len(acked) > b))
            if kills < cycles:
                # From its first acknowledgement on, anywhere in the stream of commits.
                await until(lambda b=before: len(acked) > b)
                await asyncio.sleep(chance.uniform(0, 0.02))
                process.send_signal(signal.SIGKILL)
                kills += 1
            else:
                await feeding
                assert process.stdin is not None
                process.stdin.close()
            await process.wait()
        halfway += process.returncode == -signal.SIGKILL and len(acked) - before < size - 5
    assert kills == cycles
    assert halfway > cycles / 2 or kind == "postgres"  # most of them in the middle of the stream
    assert sent > len(lines)
    store = await postgres.opened(kind, path)
    try:
        stored = await rows(store, "SELECT event_id, count(*) FROM events GROUP BY event_id")
        assert dict(stored) == dict.fromkeys(lines, 1)
        await check_store(store)
        query = "SELECT turn, rater, value, event_id FROM labels ORDER BY turn"
        labels = await rows(store, query)
    finally:
        await store.close()
    assert len(labels) > TURNS / 2  # of some the last word was taken back
    # The same events in another order, in a store that nobody killed:
    store = await postgres.opened(kind, tmp_path / "other.db")
    try:
        for number in range(TURNS):
            await add_turn(store, f"t{number}")
        shuffled = [parse(line) for line in lines.values()]
        chance.shuffle(shuffled)
        await make(store).submit(shuffled, "loopback")
        assert await rows(store, query) == labels
    finally:
        await store.close()


def test_who_wants_to_count_says_how_often() -> None:
    assert asked({}) == 0
    assert asked({"GOODBOT_KILLS": "1000"}) == 1000
    assert each(["a", "b", "c"], 0) == ["a", "b", "c"]
    assert len(each(["a", "b", "c"], 1000)) == 1002
    page = Path(__file__).parents[2] / "docs/performance.md"
    assert "GOODBOT_KILLS=1000" in page.read_text(encoding="utf-8")


async def test_a_database_that_another_program_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodbot.store.connection.BUSY_SECONDS", 0.2)
    path = tmp_path / "goodbot.db"
    store = await Store.open(path)
    try:
        await add_turn(store, "t")
        dispatcher = make(store)
        await dispatcher.submit([rate("before", 1, 1.0)], "loopback")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked by another program"):
            await dispatcher.submit([rate("held", 2, -1.0)], "loopback")
        assert await store.read(lambda db: ledger.labels(db, "t")) == {"loopback:owner": 1.0}
        other.execute("ROLLBACK")
        other.close()
        await dispatcher.submit([rate("held", 2, -1.0)], "loopback")
        assert await store.read(lambda db: ledger.labels(db, "t")) == {"loopback:owner": -1.0}
        await check_store(store)
    finally:
        await store.close()


async def test_without_space_nothing_is_acknowledged_and_with_space_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    store = await Store.open(path)
    for number in range(TURNS):
        await add_turn(store, f"t{number}")
    await store.close()
    lines = events(400, random.Random(1))
    acked: set[str] = set()
    refused: dict[str, str] = {}
    async with rater(path, str(500_000)) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        async def say(line: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line.encode())
            answer = (await asyncio.wait_for(process.stdout.readline(), patience(10))).decode().strip()
            if answer.startswith("! "):
                _, id_, reason = answer.split(" ", 2)
                refused[id_] = reason
            else:
                acked.add(answer)

        for line in lines.values():
            await say(line)
            if len(refused) > 5:
                break
        assert len(acked) > 10
        assert all(reason.startswith(("StoreError", "StoreFullError")) for reason in refused.values())
        process.stdin.write(b"more space\n")
        for id_ in list(refused):
            await say(lines[id_])
        process.stdin.close()
        assert await process.wait() == 0
    assert set(refused) <= acked
    store = await Store.open(path)
    try:
        stored = await rows(store, "SELECT event_id FROM events")
        assert {id_ for (id_,) in stored} == acked
        await check_store(store)
    finally:
        await store.close()


async def test_a_damaged_database_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    store = await Store.open(path)
    for number in range(50):
        await add_turn(store, f"t{number}", response="x" * 500)
    await store.close()
    content = bytearray(path.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)

    async def everything() -> None:
        store = await Store.open(path)
        try:
            await rows(store, "SELECT * FROM turns")
        finally:
            await store.close()

    with pytest.raises(StoreError):
        await everything()
