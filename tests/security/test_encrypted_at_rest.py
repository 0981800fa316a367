# SPDX-License-Identifier: Apache-2.0
"""Encryption at rest: nothing that people said, and nothing that was learnt of it, is in clear on the disk,
while goodbot runs and afterwards."""

from __future__ import annotations

import dataclasses
import json
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.api.adapters.manifest import WEIGHTS, verify
from goodbot.base import encrypted
from goodbot.cli.backup import archive
from goodbot.cli.backup.make import make
from goodbot.config import Grants, clear, load, vault
from goodbot.config.vault import Vault
from goodbot.store import backup

from tests.core.builders import GRANTS, check, open_bot
from tests.core.exporting.made import bring_in
from tests.core.learning.training.test_interruptions import done, each_step_once, held_at
from tests.encryption import holding, need_libraries, turned_off, turned_on
from tests.end_to_end.taught import RATINGS, Bot, questions
from tests.support import require

QUESTION, NOTE, BETTER, NAME = "xylophone-7731", "saxophone-8842", "vuvuzela-9953", "glockenspiel-1664"
PLANTED = (QUESTION, NOTE, BETTER, NAME)


@pytest.fixture(autouse=True)
def libraries() -> None:
    need_libraries()


def grants() -> Grants:
    return dataclasses.replace(GRANTS, raters=(*GRANTS.raters, NAME))


async def spoken(home: Path, *, on: bool) -> Path:
    """What is said and rated, exported and brought in; returns the exported file."""
    sections = {"encryption": load(home / "bot").encryption}
    async with open_bot(home, grants=grants(), sections=sections) as bot:
        answer = await bot.say(f"What is a {QUESTION}?")
        await bot.react(answer, "👍")
        await bot.react(answer, "👎", user=NAME)
        await bot.chat.comment(answer, f"It is a {BETTER}.", better=True)
        await bot.chat.comment(answer, f"Too short: {NOTE}.")
        await bot.command("notes")
        result = await bot.app.commands.execute(bot.chat.typed("export", f"--text {QUESTION}"))
        path = Path(result.data["path"])
        assert ("It is encrypted" in result.text) is on
        found = holding(home / "bot", *PLANTED)
        assert bool(found) is not on, found
        if on:
            told = await bring_in(bot, path)
            assert told["left_out"] == 0
            assert holding(home / "bot", *PLANTED) == []
        copy = home / "bot" / "beside.db"
        backup.copy(home / "bot" / "goodbot.db", copy)
        make(home / "bot", home / f"running-{on}.tar", {}, now=1.8e9)
        copy.unlink()
    return path


async def test_the_words_are_found_without_it(tmp_path: Path) -> None:
    """Else the next test would find nothing anyway."""
    (tmp_path / "bot").mkdir()
    path = await spoken(tmp_path, on=False)
    assert all(holding(tmp_path / "bot", word) for word in PLANTED)
    assert path.suffix == ".jsonl"


async def test_nothing_is_in_clear_while_it_is_on(tmp_path: Path) -> None:
    home = tmp_path / "bot"
    home.mkdir()
    turned_on(home, tmp_path / "key")
    path = await spoken(tmp_path, on=True)
    assert holding(home, *PLANTED) == []
    assert holding(home, "SQLite format 3") == []
    tar = tmp_path / "running-True.tar"
    assert encrypted.mark(tar) is not None
    assert not any(word.encode() in tar.read_bytes() for word in (*PLANTED, "manifest.json", "ustar"))
    mark = encrypted.mark(path)
    assert mark is not None
    key = Vault(home, load(home).encryption).key(mark)
    assert key.hex() not in (home / "config.toml").read_text() + (home / "encryption.json").read_text()
    with encrypted.reader(path, key) as file:
        [line] = [json.loads(one) for one in file.read().splitlines()]
    assert QUESTION in line["messages"][-1]["content"]
    [card] = (home / "exports").glob("*.card.md.enc")
    with encrypted.reader(card, key) as file:
        assert QUESTION in file.read().decode()


async def test_what_was_in_clear_is_not_any_more_and_comes_back(tmp_path: Path) -> None:
    home = tmp_path / "bot"
    home.mkdir()
    await spoken(tmp_path, on=False)
    before = holding(home, *PLANTED)
    turned_on(home, tmp_path / "key")
    assert holding(home, *PLANTED) == []
    turned_off(home)
    assert holding(home, *PLANTED) == [name for name in before if not name.endswith(("-wal", "-shm"))]


def with_bytes(folder: Path, wanted: bytes) -> list[str]:
    """Which files in it hold these bytes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [file.relative_to(folder).as_posix() for file in files if wanted in file.read_bytes()]


LEARNT = struct.pack("<16f", *[0.01] * 16)
"""What the first run of the fake backend leaves."""
memory = pytest.mark.skipif(not clear.in_memory(), reason="no file system in memory: docs/data.md says so")


@memory
@pytest.mark.parametrize("on", [False, True])
async def test_what_was_learnt_is_in_clear_in_memory_alone(tmp_path: Path, *, on: bool) -> None:
    (home := tmp_path / "bot").mkdir()
    if on:
        turned_on(home, tmp_path / "key")
    async with open_bot(tmp_path, sections={"encryption": load(home).encryption}) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        assert (await bot.say("Who?")).text.startswith("v1")
        place = clear.of(home / "adapters")
        assert bool(with_bytes(home, LEARNT)) is not on
        assert with_bytes(place, LEARNT)
        assert place.is_relative_to(home) is not on
        row = await bot.app.registry.row(1)
        verify(bot.app.registry.root, row.directory, row.sha256)
        await check(bot)
        made = make(home, tmp_path / "backup.tar", {}, now=1.8e9)
        assert (made.about.adapters, made.about.left_out) == (1, ())
        assert bool(with_bytes(tmp_path, LEARNT)) is not on
    assert place.exists() is not on
    assert bool(with_bytes(home, LEARNT)) is not on
    (into := tmp_path / "into").mkdir()
    with vault.lent(into, vault.of(home / vault.FILE) if on else None):
        if on:
            (into / vault.FILE).write_bytes((home / vault.FILE).read_bytes())
        archive.read(tmp_path / "backup.tar", into, by=vault.of(home / vault.FILE))
        assert bool(with_bytes(into, LEARNT)) is not on


@memory
async def test_an_interrupted_training_goes_on_from_what_is_encrypted(tmp_path: Path) -> None:
    (home := tmp_path / "bot").mkdir()
    turned_on(home, tmp_path / "key")
    sections = {"encryption": load(home).encryption}
    async with open_bot(tmp_path, sections=sections) as bot:
        await bot.rated(8)
        await held_at(bot, 3)
        place = clear.of(home / "staging")
        assert (place / "run-1" / "checkpoints" / "kept").read_text() == "3"
    assert not place.exists()
    [kept] = [file for file in (home / "staging").rglob("*") if file.is_file()]
    assert kept.name == "checkpoints.tar.enc"
    assert encrypted.mark(kept)
    async with open_bot(tmp_path, sections=sections) as bot:
        bot.fake.set(train="steps", hold=None)
        assert (await bot.train()).state == "activated"
        assert done(bot) == each_step_once()
        await check(bot)
        assert [*(home / "staging").iterdir()] == []


@pytest.fixture
def taught(tmp_path: Path) -> Iterator[Bot]:
    bot = Bot(tmp_path / "home")
    yield bot
    bot.stop(signal.SIGKILL)


@memory
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_after_a_real_training_nothing_of_it_is_on_the_disk(taught: Bot, tmp_path: Path) -> None:
    require("torch")
    from goodbot_training.tiny import model_path

    taught.configure(model_path())
    done = taught.call("encrypt", "--key", f"file:{tmp_path / 'key'}")
    assert done.returncode == 0, done.stderr
    taught.start()
    asked = [question.text for question in questions(1, RATINGS)]
    taught.teach(asked)
    taught.ask([f"What is a {QUESTION}?"])
    trained = taught.call("train")
    assert taught.json("status")["version"] == 1, trained.stdout + trained.stderr
    exported = taught.call("adapters", "export", "1", "--format", "peft", "--out", str(tmp_path / "v1"))
    assert exported.returncode == 0, exported.stderr
    weights = (tmp_path / "v1" / WEIGHTS).read_bytes()
    learnt = weights[-512:]
    assert len(set(learnt)) > 100, "these are numbers, not zeros"
    assert holding(taught.home, QUESTION, *asked) == []
    assert with_bytes(taught.home, learnt) == []
    assert with_bytes(clear.root(taught.home), learnt), "the model that answers has read it there"
    assert taught.stop() == 0
    assert with_bytes(clear.root(taught.home), learnt) == []
    assert holding(taught.home, QUESTION, *asked) == []
    assert with_bytes(taught.home, learnt) == []
