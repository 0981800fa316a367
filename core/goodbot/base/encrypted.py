# SPDX-License-Identifier: Apache-2.0
"""Files that only a key opens: AES-256-GCM in parts, so that one of any size is written and read bit by bit.

Each file has a key of its own, made of the common one and a random number in its head. A part's nonce is its
number and whether it is the last one: no part can be moved, left out, repeated or cut off unnoticed.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from goodbot.base import durable
from goodbot.base.errors import GoodbotError, MissingExtraError
from goodbot.base.worded import Worded

ENDING = ".enc"
_MAGIC = b"goodbot encrypted file 1\n"
_ID, _SALT, _OWN = 8, 16, 32
_HEAD = len(_MAGIC) + _ID + _SALT + _OWN
_PART = 1 << 16
_TAG = 16


class EncryptedFileError(GoodbotError):
    """The file is not whole, or another key made it."""


@dataclass(frozen=True, slots=True)
class KeyMark:
    """By which a key is known again; nobody finds the key by it."""

    id: str
    """16 hexadecimal digits."""
    salt: str
    """32 of them; what a passphrase was made a key with."""


def mark(path: Path) -> KeyMark | None:
    """By which key the file was encrypted; None for a file that is not. Raises OSError."""
    with path.open("rb") as file:
        return mark_in(file)


def mark_in(file: BinaryIO) -> KeyMark | None:
    """The same of an open file, which is read to where its parts begin. Raises OSError."""
    head = file.read(_HEAD)
    if not head.startswith(_MAGIC) or len(head) < _HEAD:
        return None
    key, salt = head[len(_MAGIC) :][:_ID], head[len(_MAGIC) + _ID :][:_SALT]
    return KeyMark(key.hex(), salt.hex())


def size_in(size: int) -> int:
    """How many clear bytes an encrypted file of so many has."""
    sealed = max(0, size - _HEAD)
    return max(0, sealed - -(-sealed // (_PART + _TAG)) * _TAG)


def require() -> None:
    """Raise MissingExtraError unless the library is here."""
    _library("cryptography.hazmat.primitives.ciphers.aead")


class Writer:
    """Takes what is to be encrypted; without `finish` the file is not whole, and every reader says so."""

    def __init__(self, file: BinaryIO, key: bytes, by: KeyMark) -> None:
        """Raises MissingExtraError, OSError."""
        own = os.urandom(_OWN)
        self._head = _MAGIC + bytes.fromhex(by.id) + bytes.fromhex(by.salt) + own
        self._cipher = _cipher(key, own)
        self._file = file
        self._waiting = bytearray()
        self._number = self._taken = 0
        file.write(self._head)

    def tell(self) -> int:
        """How many bytes it has taken."""
        return self._taken

    def write(self, data: bytes) -> int:
        """Encrypt these bytes. Raises OSError."""
        self._waiting += data
        self._taken += len(data)
        while len(self._waiting) > _PART:  # one part is kept back: it may be the last
            self._put(bytes(self._waiting[:_PART]), last=False)
            del self._waiting[:_PART]
        return len(data)

    def flush(self) -> None:
        """Only `finish` writes what waits."""

    def finish(self) -> None:
        """Write the last part, on to the disk, and close the file. Raises OSError."""
        self._put(bytes(self._waiting), last=True)
        self._waiting.clear()
        durable.flush(self._file)
        self._file.close()

    def close(self) -> None:
        """Close the file as it is. Raises OSError."""
        self._file.close()

    def _put(self, part: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), part, self._head))
        self._number += 1


class _Parts(io.RawIOBase):
    """The clear bytes of an encrypted file, one part after the other."""

    def __init__(self, file: BinaryIO, key: bytes) -> None:
        self._file = file
        self._head = file.read(_HEAD)
        self._cipher = _cipher(key, self._head[-_OWN:])
        self._next = file.read(_PART + _TAG)
        if len(self._next) < _TAG:  # there is always one part
            raise EncryptedFileError(Worded("{path} is cut short", path=self._name))
        self._clear = b""
        self._number = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._clear and self._next:
            self._advance()
        taken = min(len(buffer), len(self._clear))
        buffer[:taken] = self._clear[:taken]
        self._clear = self._clear[taken:]
        return taken

    def close(self) -> None:
        self._file.close()
        super().close()

    def _advance(self) -> None:
        part, self._next = self._next, self._file.read(_PART + _TAG)
        failure: type[Exception] = _library("cryptography.exceptions").InvalidTag
        try:
            self._clear = self._cipher.decrypt(_nonce(self._number, not self._next), part, self._head)
        except failure:
            damaged = Worded("{path} is damaged, or cut short: its parts do not fit", path=self._name)
            raise EncryptedFileError(damaged) from None
        self._number += 1

    @property
    def _name(self) -> str:
        return str(getattr(self._file, "name", "the file"))


def reader(path: Path, key: bytes) -> BinaryIO:
    """The clear bytes of a file that has a `mark`. Reading raises EncryptedFileError where it is not whole.

    Raises MissingExtraError, OSError.
    """
    file = path.open("rb")
    try:
        return reader_of(file, key)
    except BaseException:
        file.close()
        raise


def reader_of(file: BinaryIO, key: bytes) -> BinaryIO:
    """The same of an open file, from its first byte on; it is closed with what is returned."""
    return io.BufferedReader(_Parts(file, key), _PART)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])


def _cipher(key: bytes, own: bytes) -> Any:
    hashes = _library("cryptography.hazmat.primitives.hashes")
    derived = _library("cryptography.hazmat.primitives.kdf.hkdf").HKDF(
        algorithm=hashes.SHA256(), length=32, salt=own, info=b"goodbot encrypted file"
    )
    return _library("cryptography.hazmat.primitives.ciphers.aead").AESGCM(derived.derive(key))


def _library(name: str) -> Any:
    """A module of `cryptography`, which takes a while to import: only where something is encrypted."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(Worded("encryption"), "encryption") from None
