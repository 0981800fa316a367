# SPDX-License-Identifier: Apache-2.0
"""The way back one release: the release before opens the data, and goes on with them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.api.events import Outcome
from goodbot.base.errors import BusyError, NewerDataError, UsageError
from goodbot.config.lock import HomeLock
from goodbot.store import Store, backup, inbox
from goodbot.store.downgrade import given_up, step_back
from goodbot.store.migrate import migrations

from tests.core.builders import check, open_bot
from tests.core.made import rebuild
from tests.core.store.golden import content, schema, state_of_0_1_0, version
from tests.core.test_dispatcher import message
from tests.support import missing, patience

ROOT = Path(__file__).parents[3]
LATEST = len(migrations())
BEFORE = "87e11b0"
"""The last commit of schema 1."""

USED_BY_THE_RELEASE_BEFORE = """
import asyncio, sys
from pathlib import Path
import goodbot
assert str(Path(goodbot.__file__)).startswith(sys.argv[1]), goodbot.__file__
from tests.core.builders import check, open_bot

async def main():
    async with open_bot(Path(sys.argv[2])) as bot:
        status = await bot.status()
        print("version", status["version"], "ratings", status["ratings"])
        await bot.command("resume")
        await bot.command("share", "on")  # others talk to it, too
        await bot.rated(8)
        verdict = await bot.train()
        print(verdict.state, verdict.version)
        await check(bot)

asyncio.run(main())
"""


async def upgraded(home: Path) -> Path:
    path = state_of_0_1_0(home)
    await (await Store.open(path)).close()
    return path


async def test_there_and_back_is_where_it_began(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path)
    before, tables = content(path), schema(path)
    await (await Store.open(path)).close()
    after = content(path)
    said = await step_back(tmp_path)
    assert "schema 1 now" in said
    assert version(path) == 1
    assert schema(path) == tables
    assert content(path) == before
    copy = backup.beside(path, LATEST)
    assert str(copy) in said
    assert content(copy) == after
    await (await Store.open(path)).close()  # and forward again
    assert content(path) == after


def of_the_release_before(folder: Path) -> Path:
    """Its code, out of the repository's history."""
    wanted = ["core", "connectors", "training", "tests"]
    archive = subprocess.run(["git", "archive", BEFORE, *wanted], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        missing(f"the commit {BEFORE} is not in this clone")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def used(code: Path, home: Path) -> list[str]:
    """Chat, rate and train with that code; what it says."""
    path = os.pathsep.join(str(code / part) for part in ("core", "connectors", "training", "."))
    done = subprocess.run(
        [sys.executable, "-c", USED_BY_THE_RELEASE_BEFORE, str(code), str(home)],
        cwd=code,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(100),
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def test_the_release_before_opens_it_and_learns_on(tmp_path: Path) -> None:
    code = of_the_release_before(tmp_path / "before")
    home = tmp_path / "home"
    state_of_0_1_0(home / "bot")
    async with open_bot(home) as bot:
        await bot.command("resume")
        await bot.rated(8)
        assert (await bot.train()).version == 3
        await bot.rated(3)
        await check(bot)
    await step_back(home / "bot")
    status, trained = await asyncio.to_thread(used, code, home)
    assert status.startswith("version 3 ")
    assert trained == "activated 4"
    async with open_bot(home) as bot:  # the newer one takes over again
        assert (await bot.status())["version"] == 4
        await check(bot)


async def test_what_receipts_say_the_release_before_says_too(tmp_path: Path) -> None:
    path = state_of_0_1_0(tmp_path / "bot")
    async with open_bot(tmp_path) as bot:
        await bot.rated(1)
        assert await bot.command("train", user="rater") == "`train` is for the owners of this bot."
    await step_back(tmp_path / "bot")
    after = content(path)
    rating, command = (
        next(one for row in after[table] if (one := json.loads(row["receipt"]))["x"].startswith(said))
        for table, said in (("events", "Good. "), ("inbox", "`train` is for"))
    )
    assert "until the next training." in rating["x"], "as an older goodbot has said it"
    assert any("of 8 ratings" in json.loads(row["receipt"])["x"] for row in after["events"])
    assert command["x"] == "`train` is for the owners of this bot."
    assert not any("r" in json.loads(row["receipt"]) for row in after["events"] + after["inbox"])


async def test_the_release_before_reads_what_waits_in_the_inbox(tmp_path: Path) -> None:
    """It knows nobody's language."""
    path = state_of_0_1_0(tmp_path / "bot")
    asked = message("m99")
    asked = dataclasses.replace(asked, user=dataclasses.replace(asked.user, language="pt"))
    async with open_bot(tmp_path) as bot:
        receipt = asked.receipt(Outcome.ACCEPTED)
        await bot.store.write(lambda db: inbox.insert(db, asked, receipt, 1.0, open_=True))
    await step_back(tmp_path / "bot")
    [waits] = [json.loads(row["payload"]) for row in content(path)["inbox"] if row["event_id"] == "m99"]
    assert "language" not in waits["user"]
    assert waits["text"] == asked.text


async def test_what_is_given_up_is_told_before(tmp_path: Path) -> None:
    path = await upgraded(tmp_path)

    async def people(db: object) -> None:
        await db.execute("INSERT INTO grants VALUES ('t:1', 'rater', 'pairing', 1)")
        await db.execute("INSERT INTO grants VALUES ('t:2', 'owner', 'pairing', 1)")
        await db.execute("INSERT INTO set_aside SELECT id, model, 1, 'nan', '', '{}', 1 FROM turns LIMIT 1")
        await db.execute(
            "INSERT INTO quarantines (since, last_event_seq, made_by, made_at, turn)"
            " SELECT 0, 1, 'o', 1, id FROM turns LIMIT 2"
        )
        await db.execute(
            "INSERT INTO quarantines (since, last_event_seq, made_by, made_at) VALUES (5, 1, 'o', 1)"
        )
        await db.execute("INSERT INTO fixed_answers VALUES ('m', 1, 'Who?', 'Somebody.', 1)")
        await db.execute("INSERT INTO predictions SELECT id, 0.5, 1, 0 FROM turns LIMIT 3")
        await db.execute("INSERT INTO waits SELECT id, 1.5 FROM turns LIMIT 1")

    store = await Store.open(path)
    await store.write(people)
    await store.close()
    lines = await given_up(tmp_path)
    assert lines[0].startswith("2 people named by pairing")
    assert lines[1].startswith("1 times of which no rating counts")
    assert lines[2].startswith("1 answers that trainings have left out")
    assert any(line.startswith("2 answers left out one by one") for line in lines)
    assert any(line.startswith("1 answers of versions to fixed questions") for line in lines)
    assert any(line.startswith("3 answers of which the reward model says") for line in lines)
    assert not any("linked" in line for line in lines)
    assert not any("pinned" in line or "wait to go live" in line for line in lines)
    assert any("config.toml" in line for line in lines)
    assert version(path) == LATEST, "asking changes nothing"
    await step_back(tmp_path)
    assert content(backup.beside(path, LATEST))["grants"] != [], "the copy still has them"


async def test_pins_trials_and_what_waits_are_told_too(tmp_path: Path) -> None:
    path = await upgraded(tmp_path)

    async def held(db: object) -> None:
        await db.execute("UPDATE adapters SET pinned_at = 1 WHERE version = 1")
        await db.execute("UPDATE adapters SET waits = 'v1 is pinned' WHERE version = 2")
        await db.execute(
            "INSERT INTO canaries (version, scope, model, against, state, reason, began_at)"
            " VALUES (2, 'default', 'm', 1, 'running', '', 1), (1, 'default', 'm', 0, 'passed', '', 1)"
        )

    store = await Store.open(path)
    await store.write(held)
    await store.close()
    told = "\n".join(await given_up(tmp_path))
    assert "1 trial of a new version" in told
    assert "1 pinned versions" in told
    assert "1 versions that wait to go live" in told


async def test_a_linked_persons_rating_belongs_to_the_account_that_gave_it(tmp_path: Path) -> None:
    path = await upgraded(tmp_path)
    before = content(path)["labels"]

    async def link(db: object) -> None:
        for account in ("loopback:rater", "loopback:phone"):
            await db.execute("INSERT INTO links VALUES (?, 'loopback:phone', 1)", (account,))
        await rebuild(db)

    store = await Store.open(path)
    await store.write(link)
    await store.close()
    assert {label["rater"] for label in content(path)["labels"]} == {"loopback:owner", "loopback:phone"}
    assert any("linked accounts" in line for line in await given_up(tmp_path))
    await step_back(tmp_path)
    assert [{**label, "stars": None} for label in content(path)["labels"]] == before


async def test_one_step_and_no_further(tmp_path: Path) -> None:
    path = await upgraded(tmp_path)
    await step_back(tmp_path)
    before = path.read_bytes()
    assert await given_up(tmp_path) == ()
    assert "can read it" in await step_back(tmp_path)
    assert path.read_bytes() == before


async def test_not_while_goodbot_runs_not_without_data_not_with_newer_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no data"):
        await step_back(tmp_path)
    assert list(tmp_path.iterdir()) == []
    path = await upgraded(tmp_path)
    lock = HomeLock(tmp_path)
    lock.acquire()
    with pytest.raises(BusyError):
        await step_back(tmp_path)
    lock.release()
    store = await Store.open(path)
    await store._writing.execute("PRAGMA user_version = 99")
    await store.close()
    with pytest.raises(NewerDataError):
        await step_back(tmp_path)


async def test_without_space_for_the_copy_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await upgraded(tmp_path)
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1000))
    with pytest.raises(Exception, match="nothing was changed"):
        await step_back(tmp_path)
    assert version(path) == LATEST


def test_every_migration_but_the_first_has_its_way_back() -> None:
    folder = ROOT / "core/goodbot/store/migrations"
    there = {entry.name for entry in folder.glob("*.sql")} - {"0001_initial.sql"}
    assert {entry.name for entry in (folder / "back").glob("*.sql")} == there
    assert len(there) == len(migrations()) - 1
