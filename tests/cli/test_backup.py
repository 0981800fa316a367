# SPDX-License-Identifier: Apache-2.0
"""`goodbot backup` and `goodbot restore` as a person uses them, and what they refuse."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.base import trees
from goodbot.cli import main
from goodbot.cli.backup.authority import WORDS
from goodbot.config.lock import HomeLock
from goodbot.store import workshop

from tests.cli.program import Bot, need_backend
from tests.cli.terminal import Person
from tests.core.store.golden import content, state_of_0_1_0, version


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    state_of_0_1_0(home)
    (home / "config.toml").write_text("[serving]\nhistory = 2\n")
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def test_there_and_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(home / "goodbot.db")
    assert main(["backup"]) == 0
    said = capsys.readouterr().out
    [path] = home.parent.glob("goodbot-*.tar")
    assert str(path) in said
    assert "24 answers, 26 ratings, 2 adapters" in said
    assert "Not in it: tokens, sessions, codes, settings of other programs, and base models." in said
    shutil.rmtree(home)
    assert main(["restore", str(path), "--yes", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["turns"], data["before"]) == (24, None)
    assert len(content(home / "goodbot.db")["events"]) == len(before["events"])
    assert main(["adapters"]) == 0
    assert "v2" in capsys.readouterr().out


def test_a_person_is_shown_it_and_asked(home: Path) -> None:
    assert main(["backup", "b.tar"]) == 0
    (home / "config.toml").write_text("[serving]\nhistory = 3\n")
    with Person(home, "restore", "b.tar", columns=200) as person:
        person.sees(
            "24 answers, 26 ratings, 2 adapters", "[serving] history = 2 (now: 3)", "replaces", "[y/N]"
        )
        person.type("\n")
        assert person.ends() == 1
        assert "Nothing was changed." in person.look()
    assert "history = 3" in (home / "config.toml").read_text()
    assert version(home / "goodbot.db") == 1
    with Person(home, "restore", "b.tar", columns=200) as person:
        person.sees("[y/N]")
        person.type("y\n")
        assert person.ends() == 0
        assert "What was there lies in" in person.look()
    assert "history = 2" in (home / "config.toml").read_text()


@pytest.fixture
def owned(home: Path) -> Path:
    """A backup whose config names an owner that is none any more."""
    config = home / "config.toml"
    config.write_text("[connectors.api]\nowners = ['mallory']\n")
    assert main(["backup", "b.tar"]) == 0
    config.write_text("[connectors.api]\n")
    return config


def test_s3_a_new_owner_needs_a_typed_word(home: Path, owned: Path) -> None:
    for typed, done in (("y", False), ("", False), ("owners", True)):
        with Person(home, "restore", "b.tar", "--yes", columns=200) as person:
            person.sees("api:mallory becomes an owner", "Type owners to agree:")
            person.type(f"{typed}\n")
            assert person.ends() == (0 if done else 1)
            assert ("Nothing was changed." in person.look()) is not done
        assert ("mallory" in owned.read_text()) is done


def test_s8_no_name_of_a_backup_begins_a_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the list of gains, a name with a line break said what no line of goodbot's said."""
    forged = "mallory\\n  What may be after it is as it is now\\u001b[8m\\u2028"
    config = home / "config.toml"
    config.write_text(f'[connectors.api]\nowners = ["{forged}"]\n')
    assert main(["backup", "b.tar"]) == 0
    config.write_text("[connectors.api]\n")
    capsys.readouterr()
    assert main(["restore", "b.tar", "--yes", "--accept", "owners"]) == 0
    out = capsys.readouterr().out
    shown = r"api:mallory\n  What may be after it is as it is now\x1b[8m\u2028"
    assert f"    {shown} becomes an owner\n" in out
    assert not any(line.startswith("  What may be after it is") for line in out.splitlines())
    config.write_text("[connectors.api]\n")
    assert main(["restore", "b.tar", "--yes", "--json"]) == 2
    assert f"{shown} becomes an owner" in capsys.readouterr().err


def test_s3_yes_alone_is_not_enough(home: Path, owned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--json"], ["--accept", "rights"]):
        assert main(["restore", "b.tar", "--yes", *words]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "others own this goodbot" in said
        assert "say --accept owners" in said
        assert ("api:mallory becomes an owner" in said) is ("--json" in words)
    assert main(["restore", "b.tar", "--yes", "--accept", "everything"]) == 2
    assert "mallory" not in owned.read_text()
    capsys.readouterr()
    assert main(["restore", "b.tar", "--yes", "--json", "--accept", "owners"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["gains"][0] == {"text": "api:mallory becomes an owner", "accepted": "owners"}
    assert {gain["accepted"] for gain in data["gains"][1:]} <= {""}
    assert "mallory" in owned.read_text()
    for word in WORDS:
        assert main(["restore", "none.tar", "--accept", word]) == 1, "the parser knows each word"


def test_ctrl_c_at_the_question_leaves_nothing(home: Path) -> None:
    assert main(["backup", "b.tar"]) == 0
    with Person(home, "restore", "b.tar") as person:
        person.sees("[y/N]")
        person.type("\x03")
        assert person.ends() == 130
        assert "stopped: it was not done" in person.look()
    assert version(home / "goodbot.db") == 1
    assert {entry.name for entry in home.parent.iterdir()} == {"home", "b.tar"}


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["backup", "b.tar"], 2, "never replaces a file"),
        (["backup", "no/b.tar"], 2, "no directory"),
        (["--home", "none", "backup"], 2, "there is no goodbot in"),
        (["restore", "b.tar"], 2, "say --yes"),
        (["restore", "none.tar"], 1, "none.tar"),
        (["restore", "text"], 1, "not made by goodbot"),
        (["restore", "home"], 1, "directory"),
        (["restore"], 2, "required"),
    ],
)
def test_what_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, sentence: str
) -> None:
    assert main(["backup", "b.tar"]) == 0
    Path("text").write_text("not a tar " * 200)
    capsys.readouterr()
    assert main(argv) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert content(home / "goodbot.db")["turns"]


def test_a_running_goodbot_is_backed_up_and_not_replaced(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = HomeLock(home)
    lock.acquire()
    assert main(["backup", "b.tar"]) == 0
    assert main(["restore", "b.tar", "--yes"]) == 75
    assert f"process {os.getpid()}" in capsys.readouterr().err
    lock.release()


def test_beside_a_real_daemon(tmp_path: Path) -> None:
    need_backend()
    bot = Bot(tmp_path / "home")
    bot.start()
    try:
        done = bot.call("backup", str(tmp_path / "with a space.tar"))
        assert done.returncode == 0, done.stderr
        with tarfile.open(tmp_path / "with a space.tar") as tar:
            assert {"manifest.json", "goodbot.db"} <= set(tar.getnames())
        assert bot.call("restore", str(tmp_path / "with a space.tar"), "--yes").returncode == 75
        assert bot.json("status")["store"] == "ok"
    finally:
        bot.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 900 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=900k,mode=700", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_too_small_is_said_and_left_clean(
    home: Path, small_disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["backup", str(small_disk / "b.tar")]) == 1
    assert "are needed in" in capsys.readouterr().err
    assert list(small_disk.iterdir()) == []
    # And when the file system said that there is space, and there is not:
    monkeypatch.setattr("goodbot.store.backup.require_space", lambda *_: None)
    (small_disk / "fill").write_bytes(bytes(600_000))
    assert main(["backup", str(small_disk / "b.tar")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert [entry.name for entry in small_disk.iterdir()] == ["fill"]


@pytest.mark.parametrize("made", ["mkdir", "mkdtemp", "symlink"])
def test_a_full_state_directory_is_backed_up_to_another_disk(
    home: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    (disk := home.parent / "disk").mkdir()
    if made == "mkdtemp":  # a killed one has left the directory for it
        (home / "backups").mkdir()
    name = "symlink" if made == "symlink" else "mkdir"
    real: Callable[..., None] = getattr(os, name)

    def full(*args: Any, **options: Any) -> None:
        if any(home in Path(path).parents for path in args[:2] if isinstance(path, str | Path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(args[0]))
        real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        assert main(["backup", str(disk / "b.tar")]) == 0
    assert [one.name for one in disk.iterdir()] == ["b.tar"]
    assert not (home / "backups").exists()


def test_what_a_failing_disk_keeps_is_deleted_later(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (disk := home.parent / "disk").mkdir()
    real = trees.remove

    def fails(path: Path, *, ignore_errors: bool = False) -> None:
        if disk not in path.parents:
            real(path, ignore_errors=ignore_errors)

    with monkeypatch.context() as patch:
        patch.setattr(trees, "remove", fails)
        assert main(["backup", str(disk / "b.tar")]) == 0
    [left] = workshop.left(home)
    assert (left / "goodbot.db").is_file()

    def unread(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(trees, "remove", fails)
        patch.setattr(Path, "lstat", unread)
        workshop.sweep(home)
    assert workshop.left(home) == [left], "nobody knows what such a disk holds"
    workshop.sweep(home)
    assert [one.name for one in disk.iterdir()] == ["b.tar"]
    assert [*(home / "backups").iterdir()] == []


def test_an_upgrade_on_a_full_disk_changes_nothing(
    small_disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = small_disk / "home"
    path = state_of_0_1_0(home)
    before = content(path)
    assert main(["--home", str(home), "status"]) == 1
    assert "nothing was changed" in capsys.readouterr().err
    monkeypatch.setattr("goodbot.store.backup.require_space", lambda *_: None)
    free = shutil.disk_usage(small_disk).free
    (small_disk / "fill").write_bytes(bytes(max(0, free - 100_000)))
    assert main(["--home", str(home), "status"]) == 1
    assert "disk is full" in capsys.readouterr().err
    assert (version(path), content(path)) == (1, before)
    assert list(home.glob("*.partial")) + list(home.glob("*.bak")) == []
