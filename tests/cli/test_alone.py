# SPDX-License-Identifier: Apache-2.0
"""`goodbot` and nothing more: it says where one is, and what comes next."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.cli import main
from goodbot.config.lock import prepare_home

from tests.cli.program import Bot, need_backend
from tests.cli.terminal import Person


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOODBOT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def alone(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_without_a_config_and_a_terminal_it_says_which_command_sets_it_up(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    said = alone(capsys)
    assert said[0] == "goodbot is not set up here yet."
    assert [line.rpartition("  ")[2] for line in said[1:3]] == ["goodbot demo", "goodbot init"]
    assert said[3].endswith("  goodbot --browser")
    assert not home.exists(), "whoever asks makes nothing"
    elsewhere = alone(capsys, "--home", str(tmp_path / "b"))
    assert f"goodbot --home {tmp_path / 'b'} init" in elsewhere[2], "the same directory again"


def test_without_a_config_a_person_is_asked_the_questions_of_the_setup(home: Path) -> None:
    with Person(home) as person:
        person.sees("Step 1 of")
        person.type("q\n")
        person.sees("Nothing was written.")
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize(
    ("toml", "next_"),
    [
        ('[model]\npath = "demo"\n', "Next: `goodbot chat`"),
        ('[model]\npath = "demo"\n[connectors.telegram]\nowners = ["1"]\n', "Next: `goodbot run`"),
        ("[training]\nmin_ratings = 20\n", "Next: `goodbot init`"),
    ],
)
def test_a_bot_at_rest_is_told_how_it_starts(
    toml: str, next_: str, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_backend()
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", "1:x")
    prepare_home(home)
    (home / "config.toml").write_text(toml)
    said = alone(capsys)
    assert said[-1] == next_
    assert len(said) <= 3
    if "[model]" in toml:
        assert said[:2] == [
            "goodbot is set up here, and is not running.",
            "Ratings: 0 of 40, 40 more until the next training.",
        ]


def test_a_running_bot_says_what_it_waits_for_and_what_helps(running: Bot) -> None:
    def said() -> list[str]:
        done = running.call()
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    assert said()[0].startswith("goodbot runs: the base model answers")
    assert "until the next training" in said()[1]
    assert " chat`" in said()[2]
    assert running.call("pause").returncode == 0
    try:
        assert "; training is paused; `resume` lets it go on." in said()[1]
        assert said()[2].endswith(" resume` lets it learn again")
    finally:
        assert running.call("resume").returncode == 0
