# SPDX-License-Identifier: Apache-2.0
"""An upgrade keeps everything: a verified copy first, all the data after, and the bot learns on."""

from __future__ import annotations

import importlib
import logging
import shutil
import sqlite3
from importlib.resources import files
from pathlib import Path

import pytest
from goodbot.base.errors import NewerDataError, StoreError, StoreFullError
from goodbot.store import Store, backup
from goodbot.store.migrate import APPLICATION_ID, migrations
from goodbot.store.shape import require_shape

from tests.core.builders import check, check_store, open_bot
from tests.core.store.golden import content, schema, state_of_0_1_0, state_of_schema_2, version

LATEST = len(migrations())


async def migrated(path: Path) -> None:
    store = await Store.open(path)
    await store.close()


def copy_of(path: Path) -> Path:
    return path.with_name("goodbot.db.schema-1.bak")


async def test_all_data_of_the_release_before_is_there(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path)
    before = content(path)
    await migrated(path)
    after = content(path)
    assert version(path) == LATEST
    assert len(before["turns"]) == 24
    derived = {("turns", "rated"), ("pointers", "model")}  # 0002 says what they mean now
    for table, old in before.items():
        if table in ("switches", "pointers"):
            continue
        columns = [name for name in old[0] if (table, name) not in derived] if old else []
        new = [{name: row[name] for name in columns} for row in after[table]]
        assert sorted(new, key=str) == sorted(
            [{name: row[name] for name in columns} for row in old], key=str
        ), table
    [pointer] = after["pointers"]
    assert (pointer["model"], pointer["version"]) == ("fake", before["pointers"][0]["version"])
    assert {row["name"] for row in after["switches"]} == {"paused"}
    store = await Store.open(path)
    try:
        await check_store(store)
    finally:
        await store.close()


async def test_the_bot_learns_on(tmp_path: Path) -> None:
    state_of_0_1_0(tmp_path / "bot")
    async with open_bot(tmp_path) as bot:
        assert (await bot.status())["version"] == 1
        await bot.command("resume")
        await bot.rated(8)
        verdict = await bot.train()
        assert (verdict.state, verdict.version) == ("activated", 3)
        assert set(await bot.trained(3)) > set(await bot.trained(1)), "it builds on what was learnt"
        await check(bot)


async def test_what_a_goodbot_between_the_releases_wrote_opens_and_keeps_its_rows(tmp_path: Path) -> None:
    path = state_of_schema_2(tmp_path)
    before = content(path)
    assert [len(before[name]) for name in ("turns", "labels", "events")] == [23, 25, 26]
    await migrated(path)
    after = content(path)
    assert version(path) == LATEST
    for table, old in before.items():
        columns = list(old[0]) if old else []
        new = [{name: row[name] for name in columns} for row in after[table]]
        assert sorted(new, key=str) == sorted(old, key=str), table


async def test_the_bot_of_a_goodbot_between_the_releases_learns_on(tmp_path: Path) -> None:
    state_of_schema_2(tmp_path / "bot")
    async with open_bot(tmp_path) as bot:
        assert ((await bot.status())["version"], (await bot.status())["ratings"]) == (2, 7)
        assert "too long" in await bot.command("history")
        await bot.rated(1)
        verdict = await bot.train()
        assert (verdict.state, verdict.version) == ("activated", 3)
        await check(bot)


def test_a_backup_of_a_goodbot_between_the_releases_has_the_tables_of_its_schema(tmp_path: Path) -> None:
    path = state_of_schema_2(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    require_shape(path, 2)  # what `restore` asks of it


@pytest.mark.parametrize("there", ["", "withheld", "thought", "filters"])
async def test_columns_that_schema_2_had_for_some_hours_are_no_hindrance(tmp_path: Path, there: str) -> None:
    path = state_of_schema_2(tmp_path)
    script = dict(migrations())[3]
    with sqlite3.connect(path) as db:
        for statement in script.split(";"):
            if there and f" {there} " in statement:
                db.execute(statement)
    db.close()
    before = content(path)["turns"]
    await migrated(path)
    fresh = tmp_path / "fresh.db"
    await migrated(fresh)
    assert schema(path).keys() == schema(fresh).keys()
    for name, found in schema(path).items():
        columns, expected = [
            {column[0] for column in of[3]} if name.startswith("table") else of
            for of in (found, schema(fresh)[name])
        ]
        assert columns == expected, name
    after = [{name: row[name] for name in before[0]} for row in content(path)["turns"]]
    assert after == before


async def test_plain_hashes_of_who_was_refused_go(tmp_path: Path) -> None:
    """They name people to whoever tries all ids."""
    path = tmp_path / "goodbot.db"
    with sqlite3.connect(path) as db:
        for _, sql in migrations()[:24]:
            db.executescript(sql)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 24")
        db.execute("INSERT INTO refused (event, person, at) VALUES (x'01', x'02', 1.0)")
    db.close()
    await migrated(path)
    assert content(path)["refused"] == []


async def test_a_copy_is_made_first_and_it_is_the_data_of_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = state_of_0_1_0(tmp_path)
    before = content(path)
    with caplog.at_level(logging.INFO):
        await migrated(path)
    copy = copy_of(path)
    assert str(copy) in caplog.text
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (version(copy), content(copy)) == (1, before)
    # It is of use: it takes the place of the database and is upgraded again.
    shutil.copy(copy, path)
    await migrated(path)
    assert version(path) == LATEST
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "goodbot.db",
        "goodbot.db.schema-1.bak",
        "adapters",
    }


async def test_a_new_database_and_an_up_to_date_one_are_not_copied(tmp_path: Path) -> None:
    for _ in range(2):
        await migrated(tmp_path / "goodbot.db")
        assert [entry.name for entry in tmp_path.iterdir()] == ["goodbot.db"]


async def test_without_space_for_the_copy_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state_of_0_1_0(tmp_path)
    before = content(path)
    size = path.stat().st_size
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(size, size, 2 * size))
    with pytest.raises(StoreFullError, match=r"MB are needed in .* nothing was changed"):
        await migrated(path)
    assert (version(path), content(path)) == (1, before)
    assert not copy_of(path).exists()
    monkeypatch.undo()
    await migrated(path)
    assert version(path) == LATEST


async def test_a_copy_that_cannot_be_written_stops_the_upgrade(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path)
    before = content(path)
    copy_of(path).mkdir()
    with pytest.raises(StoreError, match="schema-1"):
        await migrated(path)
    assert (version(path), content(path)) == (1, before)
    assert sorted(entry.name for entry in copy_of(path).parent.glob("*.partial")) == []


async def test_a_copy_that_lacks_a_row_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state_of_0_1_0(tmp_path)
    real = backup.verify

    def lossy(copy: Path) -> backup.Copy:
        with sqlite3.connect(copy) as db:
            db.execute("DELETE FROM audit WHERE seq = 1")
        db.close()
        return real(copy)

    monkeypatch.setattr(backup, "verify", lossy)
    with pytest.raises(StoreError, match="lacks rows"):
        await migrated(path)
    assert version(path) == 1
    assert [entry.name for entry in tmp_path.glob("*.bak*")] == []


async def test_damaged_data_are_not_upgraded(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path)
    with sqlite3.connect(path) as db:
        [(page,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events_by_turn'")
    db.close()
    damaged = bytearray(path.read_bytes())
    damaged[(page - 1) * 4096 + 100 : page * 4096] = bytes(4096 - 100)
    path.write_bytes(damaged)
    with pytest.raises(StoreError):
        await migrated(path)
    assert version(path) == 1
    assert not copy_of(path).exists()


async def test_an_upgrade_whose_rows_would_point_nowhere_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state_of_0_1_0(tmp_path)
    before = content(path)
    broken = (LATEST + 1, "PRAGMA defer_foreign_keys = 1; DELETE FROM runs;")
    module = importlib.import_module("goodbot.store.migrate")
    steps = [*migrations(), broken]
    monkeypatch.setattr(module, "migrations", lambda: steps)
    with pytest.raises(StoreError):
        await migrated(path)
    monkeypatch.undo()
    assert version(path) == LATEST, "the step that went well stays"
    assert content(path)["runs"] != []
    assert content(copy_of(path)) == before


async def test_newer_data_name_the_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {LATEST + 1}")
    db.close()
    with pytest.raises(NewerDataError, match="install that version again, or run `goodbot upgrade --back`"):
        await migrated(path)


async def test_copies_go_after_a_while(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path)
    await migrated(path)
    made = copy_of(path).stat().st_mtime
    assert backup.expire(path, made - 1) == []
    assert backup.expire(path, made + 1) == [copy_of(path)]
    assert not copy_of(path).exists()
    assert path.exists()


async def test_words_that_were_learnt_weigh_what_their_answer_did_and_forget_it_on_the_way_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "goodbot.db"
    before = '[["chip","a:b",3,"long"],["comment","a:b",4,""]]'
    for number, sql in migrations()[:8]:
        with sqlite3.connect(path) as db:
            db.executescript(f"{sql}\nPRAGMA user_version = {number};")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA foreign_keys = off")
        row = "INSERT INTO run_items (run, turn, split, reward, labels, weight, words, position)"
        db.execute(f"{row} VALUES (1, 'one', 'train', -1, '{{}}', 0.25, ?, 0)", (before,))
        db.execute(f"{row} VALUES (1, 'two', 'train', -1, '{{}}', 0.5, '[]', 1)")
        db.executescript(dict(migrations())[9])
        query = "SELECT words FROM run_items ORDER BY position"
        assert db.execute(query).fetchall() == [
            ('[["chip","a:b",3,"long",0.25],["comment","a:b",4,"",0.25]]',),
            ("[]",),
        ]
        db.executescript(files("goodbot.store").joinpath("migrations/back/0009_word_weights.sql").read_text())
        assert db.execute(query).fetchall() == [(before,), ("[]",)]
    db.close()
