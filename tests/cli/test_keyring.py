# SPDX-License-Identifier: Apache-2.0
"""The key of encrypted data in the keyring, its place if nothing else is said, and when it is lost there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import keyring
import pytest
from goodbot.base.errors import StoreError
from goodbot.cli import main
from goodbot.config import load
from goodbot.store import Store
from keyring.backends import null
from keyring.errors import KeyringLocked

from tests.core.store.golden import state_of_0_1_0
from tests.encryption import content, forgotten_keys, holding, is_sqlite, need_libraries
from tests.rings import Ring

CURE = 'set [encryption] key = "file:PATH" with the copy that you have saved'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ring: Ring) -> Path:
    need_libraries()
    home = tmp_path / "home"
    state_of_0_1_0(home)
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def encrypted(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The id of the key that all is encrypted with now."""
    capsys.readouterr()
    assert main(["encrypt", *flags, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["place"] == "keyring"
    return str(told["key"])


def test_it_encrypts_and_opens_with_the_key_that_the_keyring_keeps(
    home: Path, ring: Ring, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "goodbot.db"
    before = content(path)
    id_ = encrypted(capsys)
    [(entry, key)] = ring.entries.items()
    assert entry == ("goodbot", f"GOODBOT_KEY_{id_}")
    assert holding(home, key) == []
    raw = bytes.fromhex(key)
    assert not [file for file in home.rglob("*") if file.is_file() and raw in file.read_bytes()]
    assert not is_sqlite(path)
    assert load(home).encryption.key == "keyring"
    with forgotten_keys():
        assert content(path) == before
    second = encrypted(capsys, "--rekey")
    assert {name for _, name in ring.entries} == {f"GOODBOT_KEY_{id_}", f"GOODBOT_KEY_{second}"}
    with forgotten_keys():
        del ring.entries[entry]  # backups made before need it, this database does not
        assert content(path) == before
        assert main(["decrypt", "--yes"]) == 0
    assert is_sqlite(path)
    assert content(path) == before


async def refused(home: Path) -> str:
    with forgotten_keys(), pytest.raises(StoreError) as caught:
        await Store.open(home / "goodbot.db")
    return str(caught.value)


async def test_a_key_that_is_lost_there_is_one_sentence_that_says_what_to_do(
    home: Path, ring: Ring, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = encrypted(capsys)
    data, kept = (home / "goodbot.db").read_bytes(), dict(ring.entries)
    lost = f"the data in {home} are encrypted, and the keyring has no key {id_}: {CURE}; without the key "
    ring.entries.clear()
    assert await refused(home) == f"{lost}nobody can read them"
    for wrong in ("", "no key", "ab" * 32):
        ring.entries.update(dict.fromkeys(kept, wrong))
        assert await refused(home) == f"{lost}nobody can read them"

    def locked(service: str, username: str) -> NoReturn:
        raise KeyringLocked("it is locked")

    with monkeypatch.context() as patch:
        patch.setattr(ring, "get_password", locked)
        said = await refused(home)
        assert f"the keyring does not give it: unlock it (it is locked); or {CURE}" in said
    keyring.set_keyring(null.Keyring())
    assert await refused(home) == (
        f"the data in {home} are encrypted, and this session has no keyring; or {CURE}"
    )
    keyring.set_keyring(ring)
    assert (home / "goodbot.db").read_bytes() == data, "nothing was begun anew"
    ring.entries.update(kept)
    with forgotten_keys():
        await (await Store.open(home / "goodbot.db")).close()


def test_the_copy_that_was_saved_opens_what_the_keyring_has_lost(
    home: Path, ring: Ring, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(home / "goodbot.db")
    encrypted(capsys, "--save-key", "copy")
    ring.entries.clear()
    with forgotten_keys():
        assert main(["decrypt", "--yes"]) != 0
        said = capsys.readouterr().err
        assert CURE in said
        assert said.count("\n") == 1
        config = home / "config.toml"
        config.write_text(config.read_text().replace('"keyring"', f'"file:{home.parent}/copy"'))
        assert main(["decrypt", "--yes"]) == 0
    assert content(home / "goodbot.db") == before


def test_a_keyring_that_does_not_keep_it_encrypts_nothing(
    home: Path, ring: Ring, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "set_password", lambda service, username, password: None)
    assert main(["encrypt"]) != 0
    assert "the keyring does not keep what it is given" in capsys.readouterr().err
    keyring.set_keyring(null.Keyring())
    assert main(["encrypt"]) != 0
    said = capsys.readouterr().err
    assert "this session has no keyring: name a file, as --key file:PATH" in said
    assert is_sqlite(home / "goodbot.db")
    assert not (home / "encryption.json").exists()
