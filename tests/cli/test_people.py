# SPDX-License-Identifier: Apache-2.0
"""People from the command line: pair, grant, switch channels, forget, with and without a daemon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.program import Bot, need_backend

CONFIG = '[connectors.telegram]\nowners = ["1"]\nraters = ["2"]\n'


@pytest.fixture
def bot(tmp_path: Path) -> Bot:
    need_backend()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    return Bot(home)


def test_pair_shows_a_code_once_and_keeps_its_hash(bot: Bot) -> None:
    done = bot.call("pair", "telegram")
    assert done.returncode == 0, done.stderr
    code = done.stdout.splitlines()[0]
    assert re.fullmatch(r"[A-Z2-9]{4}-[A-Z2-9]{4}", code)
    assert "within an hour" in done.stdout
    for path in bot.home.rglob("*"):
        if path.is_file():
            assert code.encode() not in path.read_bytes()
            assert code.replace("-", "").encode() not in path.read_bytes()
    again = bot.json("pair", "telegram")
    assert again["code"] != code
    assert again["connector"] == "telegram"


def test_pair_means_the_only_connector(bot: Bot) -> None:
    assert bot.json("pair")["connector"] == "telegram"


@pytest.mark.parametrize("words", [["slack"], ["terminal"]])
def test_pair_says_which_connectors_there_are(bot: Bot, words: list[str]) -> None:
    done = bot.call("pair", *words)
    assert done.returncode == 2
    assert "telegram" in done.stderr


def test_people_are_listed_granted_and_revoked_without_a_daemon(bot: Bot) -> None:
    assert "telegram:9 may talk and rate" in bot.call("people", "grant", "rater", "telegram:9").stdout
    listed = bot.json("people")["people"]
    assert ("telegram:1", "owner", "config") in [
        (entry["person"], entry["role"], entry["source"]) for entry in listed
    ]
    assert ("telegram:9", "rater", "granted") in [
        (entry["person"], entry["role"], entry["source"]) for entry in listed
    ]
    refused = bot.call("people", "revoke", "telegram:2")
    assert refused.returncode == 2
    assert f"{bot.home}/config.toml:3: the config names 2 here" in refused.stderr
    assert bot.call("people", "revoke", "telegram:9").returncode == 0
    assert "telegram:9" not in bot.call("people").stdout


def test_channels_are_switched_without_a_daemon(bot: Bot) -> None:
    assert bot.call("channels", "enable", "telegram:-100").returncode == 0
    assert "telegram:-100  since" in bot.call("channels", "list").stdout
    assert bot.call("channels", "disable", "telegram:-100").returncode == 0
    assert "in no channel" in bot.call("channels").stdout
    assert bot.call("channels", "enable", "-100").returncode == 2


def test_forget_asks_and_without_a_terminal_needs_yes(bot: Bot) -> None:
    silent = bot.call("forget", "telegram:1")
    assert silent.returncode == 2
    assert "--yes" in silent.stderr
    done = bot.call("forget", "telegram:1", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 answers, 0 ratings deleted.")


def test_rollback_since_needs_no_second_word_at_a_terminal(bot: Bot) -> None:
    done = bot.call("rollback", "--since", "2026-01-01")
    assert done.returncode == 0, done.stderr
    assert "`rollback since never`" in done.stdout
    back = bot.call("rollback", "since", "never")
    assert back.returncode == 0, "what an answer says can be typed as it stands"
    assert "0 ratings since 2026-01-01" in done.stdout
    wrong = bot.call("rollback", "--since", "2999-01-01")
    assert wrong.returncode == 2
    assert "lies in the future" in wrong.stderr
