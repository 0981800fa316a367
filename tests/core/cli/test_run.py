# SPDX-License-Identifier: Apache-2.0
"""`goodbot run` from life to life: with which settings the next one begins, and where it goes back to."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot import config
from goodbot.base.errors import GoodbotError
from goodbot.cli import run
from goodbot.cli.service.supervision import Supervision
from goodbot.config.lock import HomeLock
from goodbot.daemon.control import ControlSocket

Life = Callable[[Path], bool]


def history(settings: config.Config) -> object:
    return settings.serving.history


async def lived(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    *lives: Life,
    look: Callable[[config.Config], object] = history,
) -> list[object]:
    """What `look` sees of the settings of each life; they end as they are told, no goodbot is opened."""
    seen: list[object] = []
    rest = iter(lives)

    async def live(settings: Any, *_: Any) -> bool:
        seen.append(look(settings))
        return next(rest)(home / "config.toml")

    monkeypatch.setattr(run, "_live", live)
    try:
        await run._run(argparse.Namespace(home=home, config=None, demo_model=False, insecure_local=False))
    finally:
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(name)
    return seen


def leaves(text: str) -> Life:
    """It writes the config file, and another one is to take over."""

    def life(file: Path) -> bool:
        file.write_text(text, "utf-8")
        return True

    return life


def ends(_file: Path) -> bool:
    return False


def never(_file: Path) -> bool:
    raise run._NeverUpError(GoodbotError("it does not come up"))


async def test_what_the_file_says_counts_and_where_it_is_wrong_what_it_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[serving]\nhistory = 1\n", "utf-8")
    wrong = leaves("[serving]\nhistory = 'many'\n")
    seen = await lived(tmp_path, monkeypatch, leaves("[serving]\nhistory = 2\n"), wrong, ends)
    assert seen == [1, 2, 2]


async def test_settings_with_which_it_does_not_come_up_give_way_to_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[serving]\nhistory = 1\n", "utf-8")
    written = "# Ours.\n[serving]\nhistory = 3\n"
    assert await lived(tmp_path, monkeypatch, leaves(written), never, ends) == [1, 3, 1]
    assert (tmp_path / "config.toml").read_text("utf-8") == written, "what somebody wrote is not written over"


async def test_where_more_than_the_model_was_changed_it_goes_back_to_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    first, text = (
        f"[serving]\nhistory = {history}\n[model]\npath = '{model}'\n"
        for history, model in ((1, "a"), (3, "b"))
    )
    file.write_text(first, "utf-8")
    written = leaves(text)

    def look(settings: config.Config) -> object:
        return settings.model.path, settings.serving.history

    seen = await lived(tmp_path, monkeypatch, written, never, never, ends, look=look)
    assert seen == [("a", 1), ("b", 3), ("a", 3), ("a", 1)]
    assert file.read_text("utf-8") == text, "the new model was not at fault"
    file.write_text(first, "utf-8")
    with pytest.raises(GoodbotError, match="does not come up"):
        await lived(tmp_path, monkeypatch, written, never, never, never)


async def test_a_model_that_does_not_come_up_is_out_of_the_file_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[model]\npath = 'a'\n", "utf-8")
    later = "[serving]\nhistory = 2\n[model]\npath = 'a'\n"
    lives = (leaves("[model]\npath = 'b'\n"), never, leaves(later), never, ends)
    seen = await lived(tmp_path, monkeypatch, *lives, look=lambda settings: settings.model.path)
    assert seen == ["a", "b", "a", "a", "a"]
    assert file.read_text("utf-8") == later, "what came before a life that ran is not put back"


async def test_what_is_written_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[model]\npath = 'a'\n", "utf-8")

    def mends(_: Path) -> bool:
        file.write_text("[model]\npath = 'c'\n", "utf-8")
        return never(file)

    await lived(tmp_path, monkeypatch, leaves("[model]\npath = 'b'\n"), never, mends, ends)
    assert file.read_text("utf-8") == "[model]\npath = 'c'\n"


async def test_the_server_that_stays_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that shows another port would name one where nobody answers."""
    moved = leaves("[http]\nport = 65000\n[model]\npath = 'b'\n")
    seen = await lived(
        tmp_path, monkeypatch, leaves(""), moved, never, ends, look=lambda settings: settings.http
    )
    assert seen == [config.HttpConfig()] * 4


async def test_what_is_wrong_before_a_goodbot_is_opened_lets_it_go_back_too(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[plugins]\nenable = ['nothing']\n", "utf-8")
    settings = config.load(tmp_path)
    parts = (HomeLock(tmp_path), asyncio.Event(), Supervision(settings.http), ControlSocket(tmp_path))
    with pytest.raises(run._NeverUpError):
        await run._life(settings, False, *parts)


async def test_where_nothing_was_before_it_ends_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GoodbotError, match="does not come up"):
        await lived(tmp_path, monkeypatch, never)
