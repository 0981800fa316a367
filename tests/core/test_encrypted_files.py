# SPDX-License-Identifier: Apache-2.0
"""Encrypted files: any size comes back, and whatever was done to one is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from goodbot.base import encrypted
from goodbot.base.encrypted import EncryptedFileError, KeyMark

from tests.encryption import need_libraries

KEY = bytes(range(32))
MARK = KeyMark("00" * 8, "11" * 16)
PART = 1 << 16
HEAD = 25 + 8 + 16 + 32
SEALED = PART + 16


@pytest.fixture(autouse=True)
def libraries() -> None:
    need_libraries()


def written(path: Path, data: bytes, *, finish: bool = True, step: int = 7000) -> Path:
    writer = encrypted.Writer(path.open("wb"), KEY, MARK)
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
    writer.finish() if finish else writer.close()
    return path


def read(path: Path, key: bytes = KEY) -> bytes:
    with encrypted.reader(path, key) as file:
        return file.read()


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 5])
def test_any_size_comes_back(tmp_path: Path, size: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    path = written(tmp_path / "file", data)
    assert encrypted.mark(path) == MARK
    assert read(path) == data
    with encrypted.reader(path, KEY) as file:
        assert file.read(10) + file.read() == data, "also bit by bit"


def test_the_same_is_never_the_same_on_the_disk(tmp_path: Path) -> None:
    first, second = (written(tmp_path / name, b"planted" * 100).read_bytes() for name in "ab")
    assert b"planted" not in first
    assert first[HEAD:] != second[HEAD:]


def test_a_plain_file_has_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in (b"", b"goodbot encrypted file 1\n", b"{}"):
        path.write_bytes(text)
        assert encrypted.mark(path) is None


def swapped(data: bytes) -> bytes:
    first, second = data[HEAD : HEAD + SEALED], data[HEAD + SEALED : HEAD + 2 * SEALED]
    return data[:HEAD] + second + first + data[HEAD + 2 * SEALED :]


@pytest.mark.parametrize(
    "done",
    [
        lambda data: data[:-1],
        lambda data: data[:HEAD],
        lambda data: data[: HEAD + SEALED],
        lambda data: data[: HEAD + 2 * SEALED],
        lambda data: data + b"x",
        lambda data: data + data[HEAD : HEAD + SEALED],
        lambda data: data[:HEAD] + data[HEAD + SEALED :],
        lambda data: data[: HEAD + 5] + bytes([data[HEAD + 5] ^ 1]) + data[HEAD + 6 :],
        lambda data: data[: HEAD - 1] + bytes([data[HEAD - 1] ^ 1]) + data[HEAD:],
        swapped,
    ],
)
def test_what_was_changed_is_not_read(tmp_path: Path, done: Callable[[bytes], bytes]) -> None:
    path = written(tmp_path / "file", b"planted words " * 12_000)
    path.write_bytes(done(path.read_bytes()))
    with pytest.raises(EncryptedFileError, match=r"damaged|cut short"):
        read(path)


def test_a_file_that_was_not_finished_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "file", b"x" * (3 * PART), finish=False)
    with pytest.raises(EncryptedFileError):
        read(path)


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFileError):
        read(written(tmp_path / "file", b"planted"), bytes(32))
