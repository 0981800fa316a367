# SPDX-License-Identifier: Apache-2.0
"""The store through SQLCipher does all that it does without; and what is said where no key is there."""

from __future__ import annotations

import asyncio
import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base.errors import GoodbotError, MissingExtraError, StoreDamagedError, StoreError, UsageError
from goodbot.cli.encryption import change
from goodbot.config import EncryptionConfig, load, passphrase, private, vault
from goodbot.config.vault import Vault
from goodbot.store import Store, backup, cipher, downgrade, inspection
from goodbot.store.migrate import migrations
from goodbot.store.query import fetch
from goodbot.store.shape import require_shape

from tests.core.builders import add_turn
from tests.core.store.golden import state_of_0_1_0
from tests.encryption import (
    content,
    forgotten_keys,
    holding,
    is_sqlite,
    need_libraries,
    turned_off,
    turned_on,
)
from tests.support import patience

PLANTED = "xylophone-7731"


@pytest.fixture(autouse=True)
def libraries() -> None:
    need_libraries()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    turned_on(home, tmp_path / "key")
    return home


async def test_a_new_database_is_encrypted_from_its_first_byte(home: Path) -> None:
    path = home / "goodbot.db"
    store = await Store.open(path)
    try:
        await add_turn(store, "t1", response=PLANTED)
        await add_turn(store, "t2", response=PLANTED)
        assert await store.read(lambda db: fetch(db, "PRAGMA journal_mode")) == [("wal",)]
        assert await store.read(lambda db: fetch(db, "SELECT count(*) FROM turns")) == [(2,)]
        assert holding(home, PLANTED) == []
        assert (home / "goodbot.db-wal").stat().st_size > 0
        async with inspection.look(path) as db:  # as another process does
            assert await inspection.damage(db) == ""
            assert await fetch(db, "SELECT DISTINCT response FROM turns") == [(PLANTED,)]
        await asyncio.to_thread(backup.copy, path, home / "copy.db")
        await store.compact()
        assert holding(home, PLANTED) == []
    finally:
        await store.close()
    assert not is_sqlite(path)
    assert not is_sqlite(home / "copy.db")
    assert backup.verify(home / "copy.db").rows["turns"] == 2
    require_shape(path, len(migrations()))
    assert path.stat().st_mode & 0o077 == 0


async def test_one_statement_that_fails_undoes_only_itself(home: Path) -> None:
    store = await Store.open(home / "goodbot.db")
    try:
        done = await asyncio.gather(
            add_turn(store, "one"),
            store.write(lambda db: fetch(db, "INSERT INTO nowhere VALUES (1)")),
            add_turn(store, "two"),
            return_exceptions=True,
        )
        assert isinstance(done[1], StoreError)
        assert await store.read(lambda db: fetch(db, "SELECT count(*) FROM turns")) == [(2,)]
        with pytest.raises(StoreError):
            await store.read(lambda db: fetch(db, "SELECT * FROM nowhere"))
    finally:
        await store.close()


async def test_the_data_of_a_release_before_are_upgraded_with_an_encrypted_copy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = state_of_0_1_0(home)
    before = content(path)
    turned_on(home, tmp_path / "key")
    assert content(path) == before
    await (await Store.open(path)).close()
    [copy] = home.glob("*.bak")
    assert content(copy) == before
    assert not is_sqlite(copy)
    with pytest.raises(UsageError, match="goodbot decrypt"):
        await downgrade.given_up(home)
    turned_off(home)
    assert is_sqlite(copy)
    assert content(copy) == before
    assert not (home / "encryption.json").exists()
    await (await Store.open(path)).close()


async def test_a_damaged_page_is_called_damage(home: Path) -> None:
    path = home / "goodbot.db"
    store = await Store.open(path)
    for number in range(40):
        await add_turn(store, f"t{number}", response=PLANTED * 200)
    await store.close()
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at + 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreDamagedError, match="damaged: bring a backup back"):
        await Store.open(path)


async def refused(home: Path) -> str:
    """The one sentence that a start says."""
    with forgotten_keys(), pytest.raises(GoodbotError) as caught:
        await Store.open(home / "goodbot.db")
    said = str(caught.value)
    assert "\n" not in said
    return said


async def test_each_thing_that_is_not_there_is_one_sentence_that_says_what_to_do(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    await (await Store.open(home / "goodbot.db")).close()
    kept = key.read_text()
    key.chmod(0o644)
    assert f"chmod 600 {key}" in await refused(home)
    key.unlink()
    assert f"their key file {key} is not there: bring it back from a copy" in await refused(home)
    key.write_text(f"{'ab' * 32}\n")
    key.chmod(0o600)
    assert "which is not in" in await refused(home)
    assert "name the file that holds it in [encryption] key" in await refused(home)
    key.write_text(kept)
    vault.register(home, EncryptionConfig(enabled=True, key="prompt"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "their passphrase is asked for at a terminal" in await refused(home)
    load(home)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlcipher3.dbapi2", None)
        with pytest.raises(MissingExtraError, match="encryption needs packages that are not installed"):
            await Store.open(home / "goodbot.db")
    await (await Store.open(home / "goodbot.db")).close()


async def test_a_config_that_says_otherwise_is_told_so(home: Path, tmp_path: Path) -> None:
    await (await Store.open(home / "goodbot.db")).close()
    config = home / "config.toml"
    config.write_text(config.read_text().replace("enabled = true", "enabled = false"))
    load(home)
    assert "[encryption] enabled is not true: set it, or type `goodbot decrypt`" in await refused(home)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "config.toml").write_text("[encryption]\nenabled = true\n")
    load(plain)
    assert "nothing is encrypted yet: type `goodbot encrypt`" in await refused(plain)


async def test_a_clear_database_in_place_of_the_encrypted_one_is_not_taken(
    home: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    state_of_0_1_0(other)
    (other / "goodbot.db").replace(home / "goodbot.db")
    assert "is in clear, and encryption is on: type `goodbot encrypt`" in await refused(home)


async def test_what_was_begun_is_to_be_finished(home: Path) -> None:
    found = Vault(home, load(home).encryption)
    record = found.record()
    assert record is not None
    for doing, command in (
        ("encrypt", "goodbot encrypt"),
        ("decrypt", "goodbot decrypt"),
        ("rekey", "goodbot encrypt --rekey"),
    ):
        found.write(vault.VaultRecord(key=record.key, place=record.place, doing=doing))  # pyright: ignore[reportArgumentType]
        assert f"type `{command}` to finish it" in await refused(home)


def test_a_key_is_not_kept_beside_what_it_locks(home: Path) -> None:
    with pytest.raises(GoodbotError, match="lies beside what the key locks"):
        vault.save(home / "key", bytes(32), home)


def test_a_key_that_the_next_start_could_not_read_encrypts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state_of_0_1_0(tmp_path / "home")
    kept = vault.save

    def on_fat(path: Path, key: bytes, home: Path) -> None:
        kept(path, key, home)
        path.chmod(0o755)  # as such a disk shows every file

    monkeypatch.setattr(vault, "save", on_fat)
    with pytest.raises(StoreError, match="take a disk where that works"):
        turned_on(tmp_path / "home", tmp_path / "key")
    assert is_sqlite(path)
    assert not (tmp_path / "home" / vault.FILE).exists()


async def test_a_lost_record_is_made_again_by_the_key_and_never_by_another(
    home: Path, tmp_path: Path
) -> None:
    path = home / "goodbot.db"
    store = await Store.open(path)
    await add_turn(store, "t1", response=PLANTED)
    await store.close()
    before, data = content(path), path.read_bytes()
    (home / vault.FILE).unlink()
    assert "is missing: bring it back, or type `goodbot encrypt --key file:PATH`" in await refused(home)
    other = tmp_path / "other"
    other.write_text(f"{'ab' * 32}\n")
    other.chmod(0o600)
    for place in ("keyring", "prompt", f"file:{other}"):
        with pytest.raises(StoreError):
            change.turn_on(home, None, place, lambda *_: None)
        assert path.read_bytes() == data
        assert not (home / vault.FILE).exists()
    turned_on(home, tmp_path / "key")
    assert content(path) == before


async def test_the_key_shows_in_no_log(home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="aiosqlite"):
        await (await Store.open(home / "goodbot.db")).close()
    assert "executing" in caplog.text
    key = bytes.fromhex((tmp_path / "key").read_text().split()[-1])
    for secret in (key, vault.database_key(key)):
        assert secret.hex() not in caplog.text
        assert repr(secret) not in caplog.text


def test_an_edited_config_lets_nothing_out_in_clear(home: Path, tmp_path: Path) -> None:
    vault.register(home, EncryptionConfig(enabled=False, key=f"file:{tmp_path}/key"))
    path = private.named(home / "one")
    file = private.create(path)
    file.write(PLANTED.encode())
    file.finish()
    assert holding(home, PLANTED) == []
    with private.opened(path) as clear:
        assert clear.read() == PLANTED.encode()


def test_who_holds_the_key_leaves_no_core_dump(home: Path) -> None:
    look = """
import resource, sys
from pathlib import Path
from goodbot.config import load
from goodbot.store import cipher

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
load(Path(sys.argv[1]))
assert cipher.key(Path(sys.argv[1], "goodbot.db"))
print(*resource.getrlimit(resource.RLIMIT_CORE))
"""
    done = subprocess.run(
        [sys.executable, "-c", look, str(home)],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert done.stdout.split() == ["0", "0"], done.stderr


def test_a_passphrase_is_the_same_however_its_letters_are_made() -> None:
    salt = "11" * 16
    assert passphrase._key("für mich allein", salt) == passphrase._key("fu\u0308r mich allein", salt)


def test_without_it_the_library_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlcipher3.dbapi2", None)
    path = state_of_0_1_0(tmp_path / "home")
    assert cipher.key(path) is None
    assert content(path)["turns"]
