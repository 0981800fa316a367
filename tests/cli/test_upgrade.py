# SPDX-License-Identifier: Apache-2.0
"""`goodbot upgrade`: how a newer one is installed, from wherever this one came; and the way back."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path

import pytest
from goodbot.base import packages, spawn
from goodbot.cli import main

from tests.cli.terminal import Person
from tests.examples.support import stranger

INSTALLED = metadata.version("goodbot")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is started: nobody is asked, on no index."""
    monkeypatch.setattr(spawn, "run", None)
    monkeypatch.setattr("subprocess.run", None)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("known", [False, True])
def test_a_newer_folder_is_installed_as_this_one_was(
    known: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not known where it came from, its name in an index may be a stranger's."""
    origin = packages.Origin(file=tmp_path) if known else packages.Origin()
    monkeypatch.setattr(packages, "origin", lambda: origin)
    monkeypatch.setattr(packages, "extras_here", lambda: ["telegram", "torch"])
    assert main(["upgrade", "--check"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"goodbot {INSTALLED} was installed{f' from {tmp_path}' if known else ''}: ")
    assert "Get a newer folder of goodbot where you got this one" in said
    assert f"Type there: `{packages.pip_line('.[telegram,torch]')}`." in said
    assert "backs the data up before" in said
    assert not stranger(said.replace("\n", " "))
    assert main(["upgrade", "--check", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["commands"] == [packages.folder_line()]
    assert (data["installed"], data["source"]) == (INSTALLED, str(tmp_path) if known else None)


def test_a_checkout_is_upgraded_with_git(capsys: pytest.CaptureFixture[str]) -> None:
    source = packages.origin().checkout
    if source is None:
        pytest.skip("goodbot is not installed editable here")
    assert (source / "pyproject.toml").exists()
    assert main(["upgrade", "--check", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["commands"][0] == f"git -C {source} pull"
    assert data["commands"][1].startswith(packages.pip_line("--editable"))


def test_only_extras_that_are_whole_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ("discord", "mlx-lm", "pytest")
    monkeypatch.setattr(packages, "_is_here", lambda needed: needed.startswith(here))
    assert shlex.split(packages.folder_line())[-1] == ".[discord,mlx]"
    assert shlex.split(packages.folder_line("/src/good bot", "--editable"))[-2:] == (
        ["--editable", "/src/good bot[discord,mlx]"]
    )


@pytest.mark.usefixtures("alone")
def test_a_wheel_from_a_file_asks_no_index(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = Path("/downloads/goodbot-0.1.0-py3-none-any.whl")
    monkeypatch.setattr(packages, "origin", lambda: packages.Origin(file=wheel))
    assert main(["upgrade", "--check"]) == 0
    said = capsys.readouterr().out
    assert f"was installed from {wheel}: " in said


@pytest.mark.parametrize("words", [[], ["--check", "--back"]])
def test_one_of_the_two_must_be_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", *words]) == 2
    assert "`goodbot upgrade --check`, or" in capsys.readouterr().err


def test_the_way_back_says_first_what_it_gives_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert main(["--home", str(home), "upgrade", "--back"]) == 2
    assert "there is no data" in capsys.readouterr().err
    assert main(["--home", str(home), "status"]) == 0
    assert main(["--home", str(home), "pause"]) == 0
    capsys.readouterr()
    assert main(["--home", str(home), "upgrade", "--back"]) == 2
    said = capsys.readouterr().err
    assert "gives up\n  tokens that `goodbot init` has kept" in said
    assert "nobody can be asked here" in said
    with Person(home, "upgrade", "--back") as ada:
        ada.sees("Go back? [y/N]")
        ada.type("\n")
        ada.sees("nothing was changed")
        assert ada.ends() == 1
    assert main(["--home", str(home), "upgrade", "--back", "--yes"]) == 0
    assert "The data is of schema 1 now" in capsys.readouterr().out
