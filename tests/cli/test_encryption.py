# SPDX-License-Identifier: Apache-2.0
"""`goodbot encrypt` and `goodbot decrypt` as a person uses them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from goodbot.cli import main
from goodbot.config import load
from goodbot.config.lock import HomeLock

from tests.cli.terminal import Person
from tests.core.store.golden import state_of_0_1_0
from tests.encryption import content, forgotten_keys, is_sqlite, need_libraries


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need_libraries()
    home = tmp_path / "home"
    state_of_0_1_0(home)
    (home / "config.toml").write_text("# mine\n[serving]\nhistory = 2\n")
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def test_on_a_new_key_and_off(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(home / "goodbot.db")
    assert main(["encrypt", "--key", "file:key"]) == 0
    said = capsys.readouterr().out
    assert "What people said, and what was learnt of it, is encrypted" in said
    assert f"in {home.parent}/key" in said
    text = (home / "config.toml").read_text()
    assert text.startswith("# mine\n")
    assert f'key = "file:{home.parent}/key"' in text
    assert not is_sqlite(home / "goodbot.db")
    assert main(["encrypt", "--json"]) == 0, "once more changes nothing"
    first = json.loads(capsys.readouterr().out)["key"]
    assert main(["encrypt", "--rekey", "--save-key", "copy", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)["key"]
    assert first != second
    assert len((home.parent / "key").read_text().splitlines()) == 3, "backups of before need the first one"
    assert (home.parent / "copy").stat().st_mode & 0o077 == 0
    assert main(["status"]) == 0
    capsys.readouterr()
    assert main(["decrypt", "--yes"]) == 0
    assert "Nothing in" in capsys.readouterr().out
    load(home)
    assert len(content(home / "goodbot.db")["turns"]) == len(before["turns"])
    assert is_sqlite(home / "goodbot.db")


def test_notes_of_older_backups_go_and_what_they_lead_to_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing seals them, so that it may not be deleted by them; they stayed in clear."""
    note, work = home / "backups" / "tmp1", home.parent / ".goodbot-backup-tmp1"
    for folder in (note, work):
        folder.mkdir(parents=True, mode=0o700)
    (note / "place").symlink_to(work)
    assert main(["encrypt", "--key", "file:key"]) == 0
    assert f"what a backup that was cut short has left: {work}." in capsys.readouterr().out
    assert work.is_dir()
    assert not note.exists()
    assert main(["encrypt"]) == 0
    assert "cut short" not in capsys.readouterr().out


def test_not_while_goodbot_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = HomeLock(home)
    lock.acquire()
    try:
        assert main(["encrypt", "--key", "file:key"]) == 75
        assert "stop it first" in capsys.readouterr().err
    finally:
        lock.release()
    assert is_sqlite(home / "goodbot.db")
    assert not (home / "encryption.json").exists()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["encrypt", "--key", "somewhere"], "--key is keyring, prompt, or file:PATH"),
        (["encrypt", "--key", "file:home/key"], "lies beside what the key locks"),
        (["encrypt", "--key", "file:no/key"], "is no directory"),
        (["encrypt", "--key", "prompt"], "asked for at a terminal"),
        (["encrypt", "--rekey"], "encryption is not on"),
        (["decrypt", "--yes"], "is encrypted"),
        (["decrypt", "config.toml"], "say with --out FILE"),
        (["decrypt", "--out", "there"], "name that file, too"),
    ],
)
def test_what_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert sentence in said
    assert is_sqlite(home / "goodbot.db")
    assert not (home / "encryption.json").exists()


def test_a_backup_comes_back_on_another_machine(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encrypt", "--key", "file:key"]) == 0
    before = content(home / "goodbot.db")
    assert main(["backup"]) == 0
    said = capsys.readouterr().out
    assert "It is encrypted with the key" in said
    [path] = home.parent.glob("goodbot-*.tar.enc")
    shutil.rmtree(home)
    (home.parent / "key").rename(home.parent / "usb")
    with forgotten_keys():
        load(home)
        assert main(["restore", str(path), "--yes"]) == 1
        assert "say where that is, as --key file:PATH" in capsys.readouterr().err
        assert main(["restore", str(path), "--yes", "--key", "file:usb"]) == 0
        assert load(home).encryption.key == f"file:{home.parent}/usb"
        assert len(content(home / "goodbot.db")["turns"]) == len(before["turns"])
        assert not is_sqlite(home / "goodbot.db")
        assert main(["status"]) == 0


def test_a_backup_in_clear_replaces_what_is_encrypted_and_says_so(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", "b.tar"]) == 0
    assert main(["encrypt", "--key", "file:key"]) == 0
    capsys.readouterr()
    assert main(["restore", "b.tar", "--yes"]) == 2
    assert "say --accept privacy" in capsys.readouterr().err
    assert not is_sqlite(home / "goodbot.db")
    assert main(["restore", "b.tar", "--yes", "--accept", "privacy"]) == 0
    assert "it is not encrypted, and what is here now is" in capsys.readouterr().out
    assert load(home).encryption.enabled is False
    assert is_sqlite(home / "goodbot.db")
    assert main(["status"]) == 0


def test_one_file_in_clear_elsewhere(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "exports").mkdir()
    (home / "exports" / "one.jsonl").write_text("planted\n")
    assert main(["encrypt", "--key", "file:key"]) == 0
    sealed = "home/exports/one.jsonl.enc"
    assert main(["decrypt", sealed, "--out", "home/clear"]) == 2
    assert "is to lie in clear" in capsys.readouterr().err
    assert main(["decrypt", sealed, "--out", "clear"]) == 0
    assert (home.parent / "clear").read_text() == "planted\n"
    assert main(["decrypt", sealed, "--out", "clear"]) == 2
    assert "nothing is written over" in capsys.readouterr().err


def test_doctor_says_whether_it_is_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line() -> str:
        main(["doctor", "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return next((one["text"] for one in checks if one["part"] == "encryption"), "")

    assert line() == ""
    assert main(["encrypt", "--key", "file:key"]) == 0
    capsys.readouterr()
    assert "on, key" in line()
    assert "while goodbot runs, adapters are in clear in" in line()
    version = home / "adapters" / "v000001-0000000000000000"
    version.mkdir(parents=True)
    (version / "manifest.json").write_text("{}")
    assert f"in clear are the adapters {version.name}" in line()
    assert main(["encrypt"]) == 0
    capsys.readouterr()
    assert [file.name for file in version.iterdir()] == ["manifest.json.enc"]
    assert "in clear are the adapters" not in line()
    (home / "exports").mkdir()
    (home / "exports" / "one.jsonl").write_text("planted\n")
    assert "in clear are one.jsonl" in line()
    (home.parent / "key").rename(home.parent / "elsewhere")
    with forgotten_keys():
        assert "bring it back from a copy" in line()


def test_a_passphrase(home: Path) -> None:
    with Person(home, "encrypt", "--key", "prompt", columns=200) as person:
        person.sees("A new passphrase")
        person.type("correct horse battery\n")
        person.sees("The same once more")
        person.type("correct horse battery\n")
        assert person.ends() == 0
        person.sees("from your passphrase")
    assert not is_sqlite(home / "goodbot.db")
    with Person(home, "decrypt", "--yes", columns=200) as person:
        person.sees("The passphrase of")
        person.type("\x04")
        person.sees("no passphrase was typed")
        assert person.ends() == 2
    with Person(home, "decrypt", "--yes", columns=200) as person:
        person.sees("The passphrase of")
        person.type("another one entirely\n")
        person.sees("That is another one. Once more:")
        person.type("correct horse battery\n")
        assert person.ends() == 0
    assert is_sqlite(home / "goodbot.db")
