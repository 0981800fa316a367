# SPDX-License-Identifier: Apache-2.0
"""A backup is whole, private and complete but for tokens; a restore is checked, shown and undoable."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import BusyError, GoodbotError, NewerDataError, StoreError, UsageError
from goodbot.cli.backup import archive
from goodbot.cli.backup.archive import ArchiveError
from goodbot.cli.backup.make import BackupResult, make
from goodbot.cli.backup.restore import UnpackedBackup, prepared, swap
from goodbot.config import Config
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.daemon.app import open_plugins
from goodbot.store import Store
from goodbot.store.migrate import migrations

from tests.core.builders import check, open_bot
from tests.core.store.golden import content, state_of_0_1_0, version

NOW = 1.8e9
PLUGINS = open_plugins(Config(home=Path()))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data of an older release, with settings, a token and a connector's own file."""
    home = tmp_path / "home"
    state_of_0_1_0(home)
    (home / "config.toml").write_text("[connectors.telegram]\nowners = [12]\n")
    (home / "secrets.env").write_text("GOODBOT_TELEGRAM_TOKEN=123:canary\n")
    (home / "secrets.env").chmod(0o600)
    state = home / "connectors" / "terminal"
    state.mkdir(parents=True)
    (state / "keys").write_text("abc")
    (state / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(state / "s"))
    return home


def made(home: Path) -> BackupResult:
    return make(home, home.parent / "b.tar", PLUGINS.connectors(), now=NOW)


async def restored(path: Path, home: Path) -> tuple[UnpackedBackup, Path | None]:
    async with prepared(path, home, PLUGINS, now=NOW) as ready:
        return ready, swap(ready, home, now=NOW)


def names(path: Path) -> set[str]:
    with tarfile.open(path) as tar:
        return set(tar.getnames())


def test_what_is_in_it_and_what_is_not(home: Path) -> None:
    backup = made(home)
    files = {name for name in names(backup.path) if not name.startswith("adapters/")}
    assert files == {"manifest.json", "goodbot.db", "config.toml"}
    assert (backup.about.turns, backup.about.ratings, backup.about.adapters) == (24, 26, 2)
    assert backup.size == backup.path.stat().st_size
    assert backup.path.stat().st_mode & 0o777 == 0o600
    assert b"canary" not in backup.path.read_bytes()
    assert {entry.name for entry in home.parent.iterdir()} == {"home", "b.tar"}


def test_it_replaces_no_file(home: Path) -> None:
    target = home.parent / "b.tar"
    target.write_text("mine")
    with pytest.raises(UsageError, match="never replaces"):
        made(home)
    target.unlink()
    target.symlink_to("nowhere")
    with pytest.raises(UsageError, match="never replaces"):
        made(home)
    with pytest.raises(UsageError, match="no directory"):
        make(home, home.parent / "none" / "b.tar", {}, now=NOW)
    with pytest.raises(UsageError, match="there is no goodbot"):
        make(home.parent, home.parent / "c.tar", {}, now=NOW)


def test_a_damaged_adapter_is_left_out_and_said(home: Path) -> None:
    folder = sorted((home / "adapters").iterdir())[0]
    (folder / "adapter_config.json").chmod(0o600)
    (folder / "adapter_config.json").write_text("{}")
    backup = made(home)
    assert backup.about.left_out == (folder.name,)
    assert not any(folder.name in name for name in names(backup.path))


async def test_beside_a_running_goodbot_and_back_into_another(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        rated = asyncio.create_task(bot.rated(6))
        home = tmp_path / "bot"
        backup = await asyncio.to_thread(make, home, tmp_path / "b.tar", {}, now=NOW)
        await rated
        with pytest.raises(BusyError, match=f"process {os.getpid()}"):
            await restored(backup.path, home)
        await check(bot)
    other = tmp_path / "other"
    ready, before = await restored(backup.path, other / "bot")
    assert before is None
    assert ready.replaces == ()
    async with open_bot(other) as bot:
        assert (await bot.status())["version"] in (0, 1)  # the model is another directory's
        await check(bot)
        await bot.rated(8)
        await bot.train()
        await check(bot)


async def test_an_older_backup_is_upgraded_and_the_old_state_kept(home: Path) -> None:
    before = content(home / "goodbot.db")
    backup = made(home)
    (home / "config.toml").write_text("# newer\n")
    (home / "models" / "mine").mkdir(parents=True)
    ready, kept = await restored(backup.path, home)
    assert version(home / "goodbot.db") == len(migrations())
    assert len(content(home / "goodbot.db")["turns"]) == len(before["turns"])
    assert "canary" in (home / "secrets.env").read_text(), "tokens stay"
    assert (home / "models" / "mine").is_dir(), "what a person put there stays"
    assert kept is not None
    assert (kept / "config.toml").read_text() == "# newer\n"
    assert content(kept / "goodbot.db") == before
    assert home.stat().st_mode & 0o777 == 0o700
    assert "telegram:12 becomes an owner" in {gain.text for gain in ready.gains}
    assert "owners" in ready.words
    assert any("24 answers, 26 ratings" in line for line in ready.replaces)


async def test_looking_at_it_changes_nothing(home: Path) -> None:
    backup = made(home)
    before = {p: p.stat().st_mtime_ns for p in home.rglob("*") if p.name != "lock"}
    async with prepared(backup.path, home, PLUGINS, now=NOW):
        assert any("restoring" in entry.name for entry in home.parent.iterdir())
    after = {p: p.stat().st_mtime_ns for p in home.rglob("*") if p.name != "lock"}
    assert after == before
    assert {entry.name for entry in home.parent.iterdir()} == {"home", "b.tar"}


@pytest.mark.parametrize("step", range(1, 6))
async def test_a_rename_that_fails_leaves_what_was(
    home: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The fourth one is of `models`, which may be a file system of its own."""
    backup = made(home)
    before = content(home / "goodbot.db")
    (home / "models").mkdir()
    (home / "new").touch()
    real, calls = Path.rename, iter(range(1, 100))

    def rename(self: Path, target: Path) -> Path:
        if next(calls) == step:
            raise OSError(28, "No space left on device", str(target))
        return real(self, target)

    async def run() -> None:
        async with prepared(backup.path, home, PLUGINS, now=NOW) as ready:
            monkeypatch.setattr(Path, "rename", rename)
            swap(ready, home, now=NOW)

    if step < 5:
        with pytest.raises(StoreError, match="No space left"):
            await run()
        assert content(home / "goodbot.db") == before
        assert (home / "models").is_dir()
        assert (home / "new").exists()
        assert {entry.name for entry in home.parent.iterdir()} == {"home", "b.tar"}
    else:
        await run()


def repacked(path: Path, home: Path, **changes: Any) -> Path:
    """The same backup with another database in it, listed as it should be."""
    into = path.parent / "unpacked"
    into.mkdir()
    about = archive.read(path, into)
    for sql in changes["sql"]:
        db = sqlite3.connect(into / "goodbot.db", isolation_level=None)
        db.execute(sql)
        db.close()
    files = {p.relative_to(into).as_posix(): p for p in into.rglob("*") if p.is_file()}
    target = path.with_name("repacked.tar")
    archive.write(target, about, files)
    return target


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM turns; END", StoreError),
        ("CREATE VIEW turns2 AS SELECT * FROM turns", StoreError),
        ("CREATE TABLE more (x)", StoreError),
        ("ALTER TABLE events ADD COLUMN x TEXT", StoreError),
        ("DROP TRIGGER label_added", StoreError),
        ("DELETE FROM turns", StoreError),
        ("PRAGMA application_id = 7", StoreError),
        ("PRAGMA user_version = 99", NewerDataError),
        ("DELETE FROM adapters", StoreError),
    ],
)
async def test_a_database_that_is_not_ours_never_comes_near(
    home: Path, sql: str, error: type[GoodbotError]
) -> None:
    backup = made(home)
    before = content(home / "goodbot.db")
    evil = repacked(backup.path, home, sql=[sql])
    with pytest.raises(error):
        await restored(evil, home)
    assert content(home / "goodbot.db") == before
    assert not any("restor" in entry.name for entry in home.parent.iterdir())


async def test_an_adapter_that_was_altered_is_refused(home: Path) -> None:
    """Its hash in the list can be forged; the one in the database's row belongs to the weights."""
    backup = made(home)
    into = home.parent / "unpacked"
    into.mkdir()
    about = archive.read(backup.path, into)
    weights = next(into.glob("adapters/*/adapter_model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    files = {p.relative_to(into).as_posix(): p for p in into.rglob("*") if p.is_file()}
    archive.write(home.parent / "evil.tar", about, files)
    with pytest.raises(StoreError, match="cannot be trusted"):
        await restored(home.parent / "evil.tar", home)


async def test_not_what_is_no_backup_and_not_over_other_peoples_files(home: Path) -> None:
    (home.parent / "x.tar").write_bytes(b"x" * 5000)
    with pytest.raises(ArchiveError):
        await restored(home.parent / "x.tar", home)
    with pytest.raises(StoreError, match="No such file"):
        await restored(home.parent / "none.tar", home)
    theirs = home.parent / "theirs"
    theirs.mkdir()
    (theirs / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match="other things"):
        await restored(made(home).path, theirs)
    assert [entry.name for entry in theirs.iterdir()] == ["thesis.txt"]


def test_a_directory_of_other_things_is_no_home(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match="other things"):
        prepare_home(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    (tmp_path / "lock").write_text("not a number\n")
    with pytest.raises(StoreError, match="other things"):
        prepare_home(tmp_path)
    for text in ("", "[build]\njobs = 4\n"):  # ~/.cargo has one, too
        (tmp_path / "config.toml").write_text(text)
        with pytest.raises(StoreError, match="other things"):
            prepare_home(tmp_path)
    (tmp_path / "config.toml").write_text("[serving]\nhistory = 4\n")
    prepare_home(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    by_hand = tmp_path / "by-hand"
    by_hand.mkdir()
    (by_hand / "config.toml").write_text("")
    prepare_home(by_hand)
    HomeLock(by_hand).acquire()
    (by_hand / "notes.txt").write_text("")
    prepare_home(by_hand)  # its lock is ours


async def test_a_full_disk_leaves_neither_half_a_backup_nor_half_a_home(home: Path) -> None:
    """The real thing: files may not grow over a limit (ENOSPC's sibling)."""
    import resource
    import signal

    backup = made(home)
    before = content(home / "goodbot.db")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
    try:
        with pytest.raises(StoreError):
            make(home, home.parent / "c.tar", {}, now=NOW)
        with pytest.raises(StoreError):
            await restored(backup.path, home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert content(home / "goodbot.db") == before
    assert {entry.name for entry in home.parent.iterdir()} == {"home", "b.tar"}
    store = await Store.open(home / "goodbot.db")
    await store.close()


def test_the_list_is_readable_by_people(home: Path) -> None:
    with tarfile.open(made(home).path) as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        listed = json.load(member)
    assert listed["about"]["turns"] == 24
    assert set(listed["files"]["goodbot.db"]) == {"size", "sha256"}
