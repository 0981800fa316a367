# SPDX-License-Identifier: Apache-2.0
"""Installing an extra, with the pip of this very environment; it may ask no index."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.cli.setup import extras
from goodbot.cli.setup.dialogue import Dialogue

from tests.support import require


@pytest.fixture
def dialogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Dialogue]:
    require("pip")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with (tmp_path / "shown").open("w+") as out:
        yield Dialogue({}, asks=False, out=out)


def shown(tmp_path: Path) -> str:
    return " ".join((tmp_path / "shown").read_text().split())


def test_what_is_there_is_not_installed_again(dialogue: Dialogue, tmp_path: Path) -> None:
    assert extras.offer(dialogue, "Telegram", ("json",), "telegram")
    assert shown(tmp_path) == ""


def test_a_pip_that_fails_is_a_sentence_with_the_command(
    dialogue: Dialogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constraints.txt").write_text("botbuilder-core==0.0.1\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    assert not extras.offer(dialogue, "Teams", ("no_such_module",), "teams", 65_000_000)
    out = shown(tmp_path)
    assert "Teams needs packages that are not installed. They take about 65 MB." in out
    assert "Installing teams, about 65 MB ..." in out
    assert "ERROR: " in out, "what pip said"
    assert "try again, or install by hand: " in out
    (log,) = re.findall(r"All that the installer said is in (\S+)", out)
    assert "botbuilder-core" in Path(log).read_text()
    Path(log).unlink()
    assert "install 'botbuilder-core>=" in out
    assert "goodbot[" not in out


def test_much_is_fetched_only_where_somebody_says_so(dialogue: Dialogue, tmp_path: Path) -> None:
    assert not extras.offer(dialogue, "Torch", ("no_such_module",), "torch", 2_500_000_000)
    out = shown(tmp_path)
    assert "They take about 2.5 GB. So much is fetched only if you say so: add --install yes." in out
    assert "Requirement" not in out, "pip was not asked"


def test_no_is_no(tmp_path: Path) -> None:
    with (tmp_path / "shown").open("w+") as out:
        dialogue = Dialogue({"--install": "no"}, asks=False, out=out)
        assert not extras.offer(dialogue, "Teams", ("no_such_module",), "teams")


def test_packages_that_are_still_missing_afterwards_are_not_claimed(
    dialogue: Dialogue, tmp_path: Path
) -> None:
    require("telegram")
    assert not extras.offer(dialogue, "Telegram", ("no_such_module",), "telegram")
    assert "Requirement already satisfied" in shown(tmp_path), "pip's own words are seen"


def test_what_could_be_installed_is_one_line_and_leaves_no_log(
    dialogue: Dialogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([["telegram"], []])  # before and after
    monkeypatch.setattr(extras, "missing_modules", lambda *_: next(found))
    monkeypatch.setattr(extras, "install_command", lambda *_: (sys.executable, "-c", "print('Collecting')"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert extras.offer(dialogue, "Telegram", ("telegram",), "telegram")
    out = shown(tmp_path)
    assert re.search(r"Installing telegram \.\.\. Installed telegram in \d+ s\.$", out), out
    assert list(tmp_path.glob("goodbot-install-*")) == []
