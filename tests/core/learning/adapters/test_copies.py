# SPDX-License-Identifier: Apache-2.0
"""Adapters that are encrypted on the disk: what is published, read, laid in clear for children, and goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.adapters.manifest import CONFIG, MANIFEST, WEIGHTS, contents, inspect, verify
from goodbot.base import encrypted, trees
from goodbot.base.errors import AdapterError, ServerError, StoreError
from goodbot.config import clear
from goodbot.learning.adapters import copies

from tests.core.fake_worker import safetensors
from tests.core.learning.adapters.test_manifest import published
from tests.encryption import need_libraries, turned_off, turned_on

NUMBERS = safetensors()[-64:]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state directory that is encrypted."""
    need_libraries()
    (home := tmp_path / "home").mkdir()
    turned_on(home, tmp_path / "key")
    return home


def test_one_is_the_same_version_encrypted_or_not(tmp_path: Path, home: Path) -> None:
    (plain := tmp_path / "plain").mkdir()
    root, name, sha256 = published(home)
    assert (name, sha256) == published(plain)[1:], "its name and its hashes are those of what was learnt"
    files = sorted(file.name for file in (root / name).iterdir())
    assert files == sorted(f"{file}.enc" for file in (CONFIG, WEIGHTS, MANIFEST))
    assert all(encrypted.mark(file) for file in (root / name).iterdir())
    assert not any(NUMBERS in file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert [entry.name for entry in root.iterdir()] == [name]
    assert not (home / "staging-3").exists()
    assert verify(root, name, sha256) == root / name
    assert inspect(root, name) == inspect(plain / "adapters", name)
    assert contents(root / name) == contents(plain / "adapters" / name)


@pytest.mark.parametrize("file", [CONFIG, WEIGHTS, MANIFEST])
def test_what_was_changed_on_the_disk_is_refused(home: Path, file: str) -> None:
    root, name, sha256 = published(home)
    place = root / name / f"{file}.enc"
    data = place.read_bytes()
    place.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(AdapterError, match="cannot be decrypted"):
        verify(root, name, sha256)
    with pytest.raises(AdapterError, match="cannot be decrypted"):
        copies.verified(root, name, sha256)
    assert not (clear.of(root) / name).exists()


def test_a_child_gets_a_copy_elsewhere_that_only_we_can_read(home: Path) -> None:
    root, name, sha256 = published(home)
    copy = copies.verified(root, name, sha256)
    assert copy == clear.of(root) / name
    assert copy.name == name
    assert copy.is_relative_to(home) is not clear.in_memory()
    assert NUMBERS in (copy / WEIGHTS).read_bytes()
    assert {path.stat().st_mode & 0o777 for path in copy.iterdir()} == {0o400}
    assert copy.stat().st_mode & 0o777 == 0o500
    assert copy.parents[1].stat().st_mode & 0o777 == 0o700
    assert copies.verified(root, name, sha256) == copy, "once more it is the same"


def test_a_copy_that_somebody_changed_is_made_again(home: Path) -> None:
    root, name, sha256 = published(home)
    copy = copies.verified(root, name, sha256)
    (copy / WEIGHTS).chmod(0o600)
    (copy / WEIGHTS).write_bytes(b"foreign")
    assert NUMBERS in (copies.verified(root, name, sha256) / WEIGHTS).read_bytes()
    copy.chmod(0o700)
    (copy / WEIGHTS).unlink()
    (copy / WEIGHTS).symlink_to("/etc/passwd")
    copies.verified(root, name, sha256)
    assert not (copy / WEIGHTS).is_symlink()


def test_where_there_is_no_room_nothing_is_wrong_with_the_version(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, name, sha256 = published(home)

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies, "_copy", full)
    with pytest.raises(ServerError, match="make room there"):
        copies.verified(root, name, sha256)


def test_what_is_deleted_is_gone_in_clear_too(home: Path) -> None:
    root, name, sha256 = published(home)
    copy = copies.verified(root, name, sha256)
    made = copy.parent / "formats" / f"{name}.gguf-0"
    made.mkdir(parents=True)
    copies.remove(root, name)
    assert not any(path.exists() for path in (root / name, copy, made))


def test_it_goes_with_its_process_or_at_the_next_start(home: Path) -> None:
    root, name, sha256 = published(home)
    first = copies.verified(root, name, sha256).parents[1]
    clear.leave(home)
    assert not first.exists()
    second = copies.verified(root, name, sha256).parents[1]
    assert second != first
    clear.sweep(home)
    assert second.exists(), "its process lives"
    clear._rooms.pop(root).release()  # as if it had been killed
    clear.sweep(home)
    assert not second.exists()


def test_where_somebody_emptied_the_memory_a_copy_is_made_again_for_us_alone(home: Path) -> None:
    root, name, sha256 = published(home)
    room = copies.verified(root, name, sha256).parents[1]
    trees.remove(room)
    copy = copies.verified(root, name, sha256)
    assert copy.parents[1] == room
    assert NUMBERS in (copy / WEIGHTS).read_bytes()
    assert room.stat().st_mode & 0o777 == 0o700
    clear.sweep(home)
    assert copy.exists(), "it is held, as before"
    trees.remove(room)
    room.mkdir()  # who knows whose it is
    with pytest.raises(StoreError, match="cannot be laid in clear"):
        copies.verified(root, name, sha256)
    assert [*room.iterdir()] == []
    room.rmdir()


def test_in_clear_there_is_no_copy(tmp_path: Path, home: Path) -> None:
    root, name, sha256 = published(home)
    turned_off(home)
    assert copies.verified(root, name, sha256) == root / name
    assert NUMBERS in (root / name / WEIGHTS).read_bytes()
    assert clear.of(tmp_path / "nobody" / "adapters") == tmp_path / "nobody" / "adapters"
