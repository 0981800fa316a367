# SPDX-License-Identifier: Apache-2.0
"""Killed at every step, an upgrade, a step back and a restore leave the old or the new, whole."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from goodbot.api.plugins import PluginHost
from goodbot.cli.backup.make import make
from goodbot.cli.backup.restore import prepared, swap
from goodbot.config.lock import prepare_home
from goodbot.store import Store, backup
from goodbot.store.downgrade import BEFORE, step_back
from goodbot.store.migrate import migrations

from tests.core.store.golden import content, state_of_0_1_0, version
from tests.support import patience

LATEST = len(migrations())


def left_by(work: Callable[[Path], None], folder: Path) -> list[Path]:
    """What each killed attempt on a copy of `folder/0` has left; the last one got through."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.points", f"{__name__}:{work.__name__}", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        timeout=patience(110),
    )
    assert done.returncode == 0, done.stderr
    return [folder / str(number) for number in range(1, int(done.stdout) + 1)]


def upgrade(folder: Path) -> None:
    async def run() -> None:
        await (await Store.open(folder / "goodbot.db")).close()

    asyncio.run(run())


def go_back(folder: Path) -> None:
    asyncio.run(step_back(folder))


def test_an_upgrade_is_all_or_nothing(tmp_path: Path) -> None:
    before = content(state_of_0_1_0(tmp_path / "0"))
    attempts = left_by(upgrade, tmp_path)
    assert len(attempts) > 40
    after = content(attempts[-1] / "goodbot.db")
    seen: set[int] = set()
    for folder in attempts:
        path = folder / "goodbot.db"
        found = version(path)
        seen.add(found)
        if found in (1, LATEST):  # each step is whole in itself
            assert content(path) == (before if found == 1 else after)
        copy = backup.beside(path, 1)
        assert copy.exists() or found == 1, "nothing is changed before the copy is there"
        if copy.exists():
            backup.verify(copy)
            assert content(copy) == before
        upgrade(folder)
        assert content(path) == after
        assert [entry.name for entry in folder.glob("*.partial")] == []
    assert seen == set(range(1, LATEST + 1))


def test_a_step_back_is_all_or_nothing(tmp_path: Path) -> None:
    before = content(state_of_0_1_0(tmp_path / "0"))
    upgrade(tmp_path / "0")
    after = content(tmp_path / "0" / "goodbot.db")
    attempts = left_by(go_back, tmp_path)
    seen: set[int] = set()
    for folder in attempts:
        found = version(folder / "goodbot.db")
        seen.add(found)
        assert content(folder / "goodbot.db") == (after if found == LATEST else before)
    assert seen == {BEFORE, LATEST}


def restore(folder: Path) -> None:
    async def run() -> None:
        home = folder / "home"
        async with prepared(folder / "backup.tar", home, PluginHost(), now=1.8e9) as ready:
            swap(ready, home, now=1.8e9)

    asyncio.run(run())


def files(home: Path) -> dict[str, bytes]:
    """Everything but the lock, and SQLite's own files beside the database."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.name not in ("lock", "goodbot.db-wal", "goodbot.db-shm")
    }


def test_a_restore_is_all_or_nothing(tmp_path: Path) -> None:
    old = tmp_path / "0" / "home"
    state_of_0_1_0(old)
    upgrade(old)
    (old / "goodbot.db.schema-1.bak").unlink()
    make(old, tmp_path / "0" / "backup.tar", {}, now=1.7e9)
    (old / "config.toml").write_text("# written after the backup\n")
    (old / "secrets.env").write_text("TOKEN=1\n")
    (old / "secrets.env").chmod(0o600)
    shutil.rmtree(next((old / "adapters").iterdir()))
    (old / "models" / "own").mkdir(parents=True)
    (old / "models" / "own" / "config.json").write_text("{}")
    (old / "questions.toml").write_text("# a person's own\n")
    before = files(old)
    attempts = left_by(restore, tmp_path)
    assert len(attempts) > 40
    after = files(attempts[-1] / "home")
    assert after["secrets.env"] == before["secrets.env"]
    given = ("models/own/config.json", "questions.toml")
    assert [after[name] for name in given] == [before[name] for name in given]
    assert len([name for name in after if name.startswith("adapters/")]) == 6
    between = 0
    for folder in attempts:
        home = folder / "home"
        between += not home.exists()
        prepare_home(home)  # as every start does
        found = files(home)
        assert found in (before, after)
        if found == after:
            [kept] = folder.glob("home.before-restore-*")
            assert files(kept) == {name: before[name] for name in before if name not in given}
        for stamp in folder.glob("home.before-restore-*"):
            shutil.rmtree(stamp)
        restore(folder)
        assert files(home) == after
        assert {entry.name.partition("-")[0] for entry in folder.iterdir()} == {
            "home",
            "backup.tar",
            "home.before",
        }
    assert between, "the moment between the two renames was among them"
