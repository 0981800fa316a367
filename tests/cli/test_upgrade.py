# SPDX-License-Identifier: Apache-2.0
"""`goodbot upgrade`: a newer wheel in a folder that pip is configured for, and none, and no pip."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from goodbot.base import packages
from goodbot.cli import main, upgrade

from tests.architecture.source import ROOT
from tests.cli.terminal import Person

INSTALLED = metadata.version("goodbot")


def wheel(folder: Path, version: str) -> None:
    """A goodbot of this version, as small as a wheel can be."""
    folder.mkdir(exist_ok=True)
    info = f"goodbot-{version}.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: goodbot\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{name},{_digest(text)},{len(text)}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(folder / f"goodbot-{version}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What pip is configured for: a folder, and no network. It looks like no checkout."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setattr(packages, "origin", packages.Origin)
    wheel(tmp_path / "wheels", INSTALLED)
    return tmp_path / "wheels"


def test_the_newest_is_installed(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--check"]) == 0
    said = capsys.readouterr().out
    assert said == f"goodbot {INSTALLED} is the newest that your package index has.\n"


def test_a_newer_one_is_named_with_the_command_that_installs_it(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(index, "9.9.9")
    monkeypatch.setattr(packages, "extras_here", lambda: ["telegram", "torch"])
    assert main(["upgrade", "--check"]) == 0
    said = capsys.readouterr().out
    assert f"goodbot {INSTALLED} is installed, 9.9.9 is available: " in said
    assert f"`{packages.pip_line('--upgrade', 'goodbot[telegram,torch]')}`" in said
    assert "backs the data up before" in said
    assert metadata.version("goodbot") == INSTALLED
    assert main(["upgrade", "--check", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["installed"], data["available"]) == (INSTALLED, "9.9.9")


def test_older_ones_are_no_news(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(index)
    wheel(index, "0.0.1")
    assert main(["upgrade", "--check"]) == 0
    assert "is the newest" in capsys.readouterr().out


def test_an_index_without_goodbot(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(index)
    index.mkdir()
    assert main(["upgrade", "--check"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("goodbot: no goodbot was found in your package index")
    assert said.count("\n") == 1


def test_offline(index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert main(["upgrade", "--check"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("goodbot: no goodbot was found in your package index: is this machine")
    assert said.count("\n") == 1


def test_an_index_that_never_answers(
    index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "_SECONDS", 0.01)
    assert main(["upgrade", "--check"]) == 1
    assert "did not answer within" in capsys.readouterr().err


def test_no_token_reaches_pip(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the interpreter writes down what it was given."""
    spy = tmp_path / "python"
    spy.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\necho '{{}}'\n")
    spy.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(spy))
    monkeypatch.setenv("GOODBOT_TELEGRAM_TOKEN", "4711:canary")
    monkeypatch.setenv("HF_TOKEN", "canary")
    assert main(["upgrade", "--check"]) == 1
    assert "pip gave no report" in capsys.readouterr().err
    given = (tmp_path / "environment").read_text()
    assert "canary" not in given
    assert "PIP_NO_INDEX=1" in given


def test_without_pip(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    [packages] = (empty / "lib").glob("python3.*/site-packages")
    (packages / "goodbot.pth").write_text(str(ROOT / "core"))  # the door is goodbot's own
    monkeypatch.setattr("sys.executable", str(empty / "bin" / "python"))
    assert main(["upgrade", "--check"]) == 1
    assert "this environment has no pip to ask" in capsys.readouterr().err


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
    assert upgrade._wanted("goodbot") == "goodbot[discord,mlx]"


def test_a_wheel_from_a_file_asks_no_index(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may have the name there."""
    wheel = Path("/downloads/goodbot-0.1.0-py3-none-any.whl")
    monkeypatch.setattr(packages, "origin", lambda: packages.Origin(file=wheel))
    monkeypatch.setattr("subprocess.run", None)
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
