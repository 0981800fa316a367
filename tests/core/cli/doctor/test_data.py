# SPDX-License-Identifier: Apache-2.0
"""The database, the adapters and the last run: undamaged, damaged, newer, older, and untouched."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import CheckState
from goodbot.cli.doctor import data, machine
from goodbot.store import settings
from goodbot.testing.host import VirtualClock

from tests.core import builders
from tests.core.cli.doctor.examining import examined, only, states, store


def edit(file: Path, *statements: str) -> None:
    with sqlite3.connect(file) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def listing(home: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in home.rglob("*"))


def database(home: Path) -> Any:
    return asyncio.run(data.database(examined(home)))


def test_nothing_is_stored_yet(tmp_path: Path) -> None:
    [check] = database(tmp_path / "none")
    assert (check.state, "nothing is stored yet" in check.text) == (CheckState.OK, True)
    assert not (tmp_path / "none").exists()


def test_a_database_as_it_should_be_is_not_touched(tmp_path: Path) -> None:
    store(tmp_path / "home")
    before = listing(tmp_path)
    [check] = database(tmp_path / "home")
    assert (check.state, "undamaged" in check.text) == (CheckState.OK, True)
    assert listing(tmp_path) == before, "no -wal, no -shm, no time stamp"


def test_a_page_that_is_damaged(tmp_path: Path) -> None:
    file = store(tmp_path / "home")
    page = file.stat().st_size // 4096 - 3
    with file.open("r+b") as raw:
        raw.seek(page * 4096)
        raw.write(os.urandom(4096))
    [check] = database(tmp_path / "home")
    assert check.state is CheckState.FAIL
    assert "damaged" in check.text
    assert check.fix.startswith("goodbot restore")


@pytest.mark.parametrize("content", [b"somebody's letters " * 300, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "goodbot.db").write_bytes(content)
    [check] = database(tmp_path)
    assert check.state is CheckState.FAIL


def test_somebody_elses_database(tmp_path: Path) -> None:
    edit(tmp_path / "goodbot.db", "CREATE TABLE recipes (name TEXT)")
    [check] = database(tmp_path)
    assert (check.state, "not a goodbot database" in check.text) == (CheckState.FAIL, True)


def test_newer_data_has_its_own_exit_code(tmp_path: Path) -> None:
    edit(store(tmp_path), "PRAGMA user_version = 9999")
    [check] = database(tmp_path)
    assert (check.state, check.exit_code) == (CheckState.FAIL, 78)
    assert "9999" in check.text


def test_an_older_schema_is_said_and_left(tmp_path: Path) -> None:
    file = store(tmp_path)
    edit(file, "PRAGMA user_version = 1")
    [check] = database(tmp_path)
    assert (check.state, "the next start brings it to" in check.text) == (CheckState.OK, True)
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()
    assert asyncio.run(data.learning(examined(tmp_path))) == []


def test_a_changed_audit_trail_is_noticed(tmp_path: Path) -> None:
    async def act(db: Any) -> None:
        for action in ("enable", "disable"):
            await settings.record(db, "terminal:0", action, "room", 1.0)

    file = store(tmp_path, act)
    assert states(database(tmp_path)) == {"database": CheckState.OK}
    edit(file, "UPDATE audit SET actor = 'terminal:1' WHERE action = 'enable'")
    assert states(database(tmp_path))["audit"] is CheckState.FAIL


def test_a_log_that_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_LARGE_LOG", 0)
    file = store(tmp_path)
    with sqlite3.connect(file) as db:  # as a daemon has it
        db.execute("INSERT INTO shares VALUES ('a:1', 1.0)")
        db.commit()
        checks = database(tmp_path)
    db.close()
    assert [check.state for check in checks] == [CheckState.OK, CheckState.WARN]


async def test_adapters_are_verified_without_a_daemon(tmp_path: Path) -> None:
    async with builders.open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        row = await bot.app.registry.row(1)
    home = tmp_path / "bot"
    seen = examined(home, f'[model]\npath = "{tmp_path}/fake"\n')
    check = await only(data.adapter_files(seen))
    assert (check.state, check.text.endswith("v1 is to answer")) == (CheckState.OK, True)
    assert (await only(data.learning(seen))).state is CheckState.OK
    weights = home / "adapters" / row.directory / "adapter_model.safetensors"
    weights.chmod(0o600)
    weights.write_bytes(weights.read_bytes()[:-1])
    check = await only(data.adapter_files(seen))
    assert (check.state, check.fix) == (CheckState.FAIL, "goodbot rollback")


async def test_a_refused_run_and_its_reason(tmp_path: Path) -> None:
    async with builders.open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="refuse")
        await bot.train()
    check = await only(data.learning(examined(tmp_path / "bot")))
    assert (check.state, "refused" in check.text) == (CheckState.WARN, True)


async def test_a_run_that_is_under_way_is_no_last_run(tmp_path: Path) -> None:
    running = {"last_run": {"state": "running", "reason": ""}}
    check = await only(data.learning(examined(tmp_path, daemon=running)))
    assert (check.state, "is under way" in check.text) == (CheckState.OK, True)


async def test_what_the_daemon_says_of_the_last_run(tmp_path: Path) -> None:
    failed = {"last_run": {"state": "failed", "reason": "no memory"}, "waiting_for_consent": 3}
    checks = await data.learning(examined(tmp_path, daemon=failed))
    assert [check.state for check in checks] == [CheckState.WARN, CheckState.WARN]
    assert "no memory" in checks[0].text
    assert "/rl share on" in checks[1].fix


async def test_the_sqlite_of_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await only(data.library(examined(tmp_path)))).state is CheckState.OK
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert (await only(data.library(examined(tmp_path)))).state is CheckState.FAIL


@pytest.mark.parametrize(
    ("now", "state", "word"),
    [(4e9, CheckState.OK, "2096"), (1e9, CheckState.FAIL, "before this goodbot was installed")],
)
async def test_the_clock(now: float, state: CheckState, word: str, tmp_path: Path) -> None:
    check = await only(machine.clock(examined(tmp_path), VirtualClock(now=now)))
    assert (check.state, word in check.text) == (state, True)


async def test_a_clock_that_has_gone_back(tmp_path: Path) -> None:
    async with builders.open_bot(tmp_path, clock=VirtualClock(now=4e9)) as bot:
        await bot.rated(1)
    check = await only(machine.clock(examined(tmp_path / "bot"), VirtualClock(now=4e9 - 7200)))
    assert (check.state, "gone back" in check.text) == (CheckState.WARN, True)
