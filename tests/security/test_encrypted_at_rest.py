# SPDX-License-Identifier: Apache-2.0
"""Encryption at rest: nothing that people said is in clear on the disk, while goodbot runs and afterwards."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from goodbot.base import encrypted
from goodbot.cli.backup.make import make
from goodbot.config import Grants, load
from goodbot.config.vault import Vault
from goodbot.store import backup

from tests.core.builders import GRANTS, open_bot
from tests.core.exporting.made import bring_in
from tests.encryption import holding, need_libraries, turned_off, turned_on

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
