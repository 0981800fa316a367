# SPDX-License-Identifier: Apache-2.0
"""What `make` fetches: the backend that goodbot itself would take, and nothing large unasked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.backend import BackendSpec
from goodbot.api.registry import automatic_backend
from goodbot.cli.setup.extras import MOST_UNASKED, amount
from goodbot_training.backends import mlx, torch

from tests.architecture.source import ROOT
from tests.support import patience

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
LARGE = (
    *("check", "bench-gpu", "bench-learning", "bench-learning-quick", "bench-words", "bench-scale"),
    "test-ray",
)


def backends(monkeypatch: pytest.MonkeyPatch, *, wheels: bool) -> dict[str, BackendSpec]:
    """On a machine with nothing installed, for which there is an MLX or is none; a Linux on x86-64."""
    monkeypatch.setattr(mlx, "_has_wheels", lambda: wheels)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    found = (mlx.register_backend(), torch.register_backend())
    return {one.name: replace(one, requires=("no_such_module",)) for one in found}


def test_it_installs_the_backend_that_goodbot_takes_where_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    [default] = re.findall(r"^BACKEND \?= (\S+)$", MAKEFILE, flags=re.M)
    taken = automatic_backend(backends(monkeypatch, wheels=True))
    assert taken.name == default
    assert taken.download is not None
    assert taken.download <= MOST_UNASKED
    assert f"({default}: about {amount(taken.download)})" in MAKEFILE


def test_where_only_a_large_one_is_left_it_tells_its_size_and_the_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = automatic_backend(backends(monkeypatch, wheels=False))
    assert left.download is not None
    assert left.download > MOST_UNASKED
    [told] = re.findall(r"could not be installed, see above.*?exit 1", MAKEFILE, flags=re.S)
    assert f"make BACKEND={left.name} demo" in told
    assert f"on Linux about {amount(left.download)}" in told


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What `make` does there; it is no part of one that runs these tests."""
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    return subprocess.run(
        ["make", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As it was fetched, with an environment that has what the tests need."""
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    peers = tmp_path / "tests" / "node" / "package-lock.json"
    peers.parent.mkdir(parents=True)
    peers.touch()
    for name in ("ready", "installed", "installed-test"):
        (tmp_path / ".venv" / name).parent.mkdir(exist_ok=True)
        (tmp_path / ".venv" / name).touch()
    return tmp_path


@pytest.mark.parametrize("target", LARGE)
def test_what_needs_all_of_it_fetches_nothing_by_itself(folder: Path, target: str) -> None:
    asked = make(folder, "--dry-run", target)
    assert "Say so first: make install-all" in asked.stdout
    assert "on Linux about 2.5 GB" in asked.stdout
    assert "pip" not in asked.stdout.partition("Say so first")[0]
    (folder / ".venv" / "installed-all").touch()
    done = make(folder, "--dry-run", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Say so first" not in done.stdout
    assert ".venv/bin/" in done.stdout


def test_it_stops_there(folder: Path) -> None:
    done = make(folder, "check")
    assert done.returncode == 2
    assert "Say so first: make install-all" in done.stderr
    assert not (folder / ".venv" / "installed-all").exists()


def test_who_asks_for_both_gets_both(folder: Path) -> None:
    done = make(folder, "--dry-run", "install-all", "check")
    assert "PyTorch comes, too: on Linux about 2.5 GB" in done.stdout
    assert "ruff check" in done.stdout
    assert "Say so first" not in done.stdout


def test_llama_cpp_comes_with_the_tests_that_are_asked_for_by_name(folder: Path) -> None:
    for target, comes in (("test", False), ("demo", False), ("test-real", True), ("install-all", True)):
        done = make(folder, "--dry-run", target)
        assert done.returncode == 0, done.stderr
        assert bool(re.search(r"--editable '[^']*\bllama-tests\b", done.stdout)) is comes, target
