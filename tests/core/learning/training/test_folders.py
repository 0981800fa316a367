# SPDX-License-Identifier: Apache-2.0
"""Where a run's child works while the state directory is encrypted: what is kept of it, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from goodbot.base import encrypted
from goodbot.config import clear
from goodbot.learning.training.folders import RunFolders

from tests.encryption import need_libraries, turned_on


@pytest.fixture
def home(tmp_path: Path) -> Path:
    need_libraries()
    (home := tmp_path / "home").mkdir()
    turned_on(home, tmp_path / "key")
    return home


def written(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / "checkpoints" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "checkpoints" / name).write_text(f"planted {name}")
    return folder


def found(folder: Path) -> dict[str, str]:
    files = [file for file in (folder / "checkpoints").rglob("*") if file.is_file()]
    return {file.relative_to(folder / "checkpoints").as_posix(): file.read_text() for file in files}


def kept(home: Path) -> Path:
    return home / "staging" / "run-1" / "checkpoints.tar.enc"


def after_a_restart(home: Path) -> Path:
    clear.leave(home)
    return RunFolders(home).of(1)


def test_the_newest_checkpoint_outlives_goodbot(home: Path) -> None:
    folders = RunFolders(home)
    place = written(
        folders.of(1), "scores.json", "step-000001/round.json", "step-000001/trainer", ".step/half"
    )
    folders.keep(1)
    assert encrypted.mark(kept(home))
    assert not any(b"planted" in file.read_bytes() for file in home.rglob("*") if file.is_file())
    written(place, "step-000002/round.json")
    folders.keep(1)
    again = after_a_restart(home)
    assert again != place
    assert not place.exists()
    names = ("scores.json", "step-000002/round.json")
    assert found(again) == {name: f"planted {name}" for name in names}
    RunFolders(home).remove(1)
    assert not again.exists()
    assert not kept(home).parent.exists()


def link(place: Path, secret: Path) -> None:
    place.symlink_to(secret)


def hard_link(place: Path, secret: Path) -> None:
    os.link(secret, place)


@pytest.mark.parametrize("made", [link, hard_link])
def test_what_a_child_has_linked_to_is_not_read(home: Path, made: Callable[[Path, Path], None]) -> None:
    folders = RunFolders(home)
    place = written(folders.of(1), "step-000001/round.json")
    (secret := place / "secret").write_text("secret")
    made(place / "checkpoints" / "scores.json", secret)
    folders.keep(1)
    assert not kept(home).exists()


def test_a_linked_step_is_not_gone_into(home: Path) -> None:
    folders = RunFolders(home)
    place = written(folders.of(1), "scores.json")
    (place / "secret").mkdir()
    (place / "checkpoints" / "step-000001").symlink_to(place / "secret")
    folders.keep(1)
    assert not kept(home).exists()


def test_one_that_is_damaged_is_begun_anew(home: Path) -> None:
    folders = RunFolders(home)
    written(folders.of(1), "scores.json")
    folders.keep(1)
    kept(home).write_bytes(kept(home).read_bytes()[:-1])
    assert not after_a_restart(home).exists()


def test_without_encryption_it_works_in_the_staging_directory(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    place = written(folders.of(1), "scores.json")
    assert place == tmp_path / "staging" / "run-1"
    folders.keep(1)
    assert found(RunFolders(tmp_path).of(1)) == {"scores.json": "planted scores.json"}
    folders.remove(1)
    assert not place.exists()
