# SPDX-License-Identifier: Apache-2.0
"""Killed at every step, encryption turned on or off, or with a new key, goes on, and nothing is lost."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from goodbot.api.adapters.manifest import MANIFEST, verify
from goodbot.base.errors import StoreError
from goodbot.cli.encryption import change
from goodbot.config import load, vault
from goodbot.config.vault import Vault
from goodbot.store import Store, cipher

from tests.core.fake_worker import safetensors
from tests.core.learning.adapters.test_manifest import published
from tests.core.store.golden import state_of_0_1_0
from tests.encryption import content, holding, is_sqlite, need_libraries, turned_on
from tests.support import patience

PLANTED = "xylophone-7731"


def left_by(work: Callable[[Path], None], folder: Path) -> list[Path]:
    """What each killed attempt on a copy of `folder/0` has left; the last one got through."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.points", f"{__name__}:{work.__name__}", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        timeout=patience(240),
    )
    assert done.returncode == 0, done.stderr
    return [folder / str(number) for number in range(1, int(done.stdout) + 1)]


def told(folder: Path) -> Callable[[str, float], None]:
    """Each time that it hears how far it is, is a moment to be killed at, too."""
    return lambda *_: os.close(os.open(folder / "heard", os.O_CREAT | os.O_WRONLY, 0o600))


def encrypt(folder: Path) -> None:
    load(folder / "home")
    change.turn_on(folder / "home", None, f"file:{folder}/key", told(folder))


def decrypt(folder: Path) -> None:
    load(folder / "home")
    change.turn_off(folder / "home", None, told(folder))


def rekey(folder: Path) -> None:
    load(folder / "home")
    change.rekey(folder / "home", None, f"file:{folder}/next", told(folder))


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A state directory with a copy of before an upgrade, exports, a half of one, a version, a training."""
    need_libraries()
    home = tmp_path / "0" / "home"
    path = state_of_0_1_0(home)
    asyncio.run(_upgraded(path))
    (home / "exports").mkdir()
    (home / "exports" / "one.jsonl").write_text(PLANTED)
    (home / "exports" / "half.jsonl.partial").write_text(PLANTED)
    published(home)
    (home / "staging" / "run-1" / "checkpoints").mkdir(parents=True)
    (home / "staging" / "run-1" / "checkpoints" / "kept").write_text(PLANTED)
    return home


def version_of(home: Path) -> list[str]:
    """The files of its version, which is what it was."""
    [version] = (home / "adapters").glob("v000007-*")
    verify(home / "adapters", version.name, hashlib.sha256(safetensors()).hexdigest())
    return sorted(file.name for file in version.iterdir())


async def _upgraded(path: Path) -> None:
    await (await Store.open(path)).close()


def databases(home: Path) -> Sequence[Path]:
    return [home / "goodbot.db", *home.glob("*.bak")]


def settled(home: Path) -> bool:
    """Whether nothing is left to be finished; while something is, nothing opens."""
    load(home)
    record = Vault(home, load(home).encryption).record()
    if record is None or not record.doing:
        return True
    with pytest.raises(StoreError, match="to finish it"):
        cipher.key(home / "goodbot.db")
    return False


def test_turning_on_goes_on_where_it_was_killed(prepared: Path, tmp_path: Path) -> None:
    before = content(prepared / "goodbot.db")
    unfinished = 0
    for folder in left_by(encrypt, tmp_path):
        home = folder / "home"
        unfinished += not settled(home)
        encrypt(folder)
        assert settled(home)
        assert content(home / "goodbot.db") == before
        assert [path.name for path in databases(home) if is_sqlite(path)] == []
        assert holding(home, PLANTED, "SQLite format 3") == []
        assert {file.name for file in (home / "exports").iterdir()} == {"one.jsonl.enc"}
        assert all(name.endswith(".enc") for name in version_of(home))
        assert [*home.rglob("*.new*")] == []
    assert unfinished > 10


def test_turning_on_can_be_taken_back_at_any_moment(prepared: Path, tmp_path: Path) -> None:
    before = content(prepared / "goodbot.db")
    for folder in left_by(encrypt, tmp_path):
        home = folder / "home"
        load(home)
        if Vault(home, load(home).encryption).record() is None:
            continue
        decrypt(folder)
        assert content(home / "goodbot.db") == before
        assert all(map(is_sqlite, databases(home)))
        assert (home / "exports" / "one.jsonl").read_text() == PLANTED
        assert MANIFEST in version_of(home)


def test_turning_off_goes_on_where_it_was_killed(prepared: Path, tmp_path: Path) -> None:
    before = content(prepared / "goodbot.db")
    turned_on(prepared, tmp_path / "0" / "key")
    for folder in left_by(decrypt, tmp_path):
        home = folder / "home"
        settled(home)
        if (home / vault.FILE).exists():
            decrypt(folder)
        assert settled(home)
        assert load(home).encryption.enabled is False
        assert content(home / "goodbot.db") == before
        assert all(map(is_sqlite, databases(home)))
        assert (home / "exports" / "one.jsonl").read_text() == PLANTED
        assert {file.name for file in (home / "exports").iterdir()} == {"one.jsonl"}
        assert not any(name.endswith(".enc") for name in version_of(home))
        assert [*home.rglob("*.new*")] == []


def test_a_new_key_goes_on_where_it_was_killed(prepared: Path, tmp_path: Path) -> None:
    before = content(prepared / "goodbot.db")
    turned_on(prepared, tmp_path / "0" / "key")
    old = Vault(prepared, load(prepared).encryption).record()
    assert old is not None
    for folder in left_by(rekey, tmp_path):
        home = folder / "home"
        if not settled(home) or load(home).encryption.key != f"file:{folder}/next":
            rekey(folder)
        assert settled(home)
        record = Vault(home, load(home).encryption).record()
        assert record is not None
        assert record.key != old.key
        assert all(name.endswith(".enc") for name in version_of(home))
        assert content(home / "goodbot.db") == before
        assert holding(home, PLANTED, "SQLite format 3") == []
