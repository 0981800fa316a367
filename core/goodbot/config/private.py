# SPDX-License-Identifier: Apache-2.0
"""Files that hold people's words, beside the database: in clear, or encrypted where that is on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO, Protocol

from goodbot.base import durable, encrypted
from goodbot.base.errors import StoreError
from goodbot.base.worded import Worded
from goodbot.config import vault
from goodbot.config.vault import Vault

_PART = 1 << 20


class Output(Protocol):
    """A file that is being written, and is whole once `finish` has returned."""

    def write(self, data: bytes, /) -> int: ...
    def tell(self) -> int: ...
    def finish(self) -> None:
        """On to the disk, and closed. Raises OSError."""
        ...

    def close(self) -> None:
        """Closed as it is. Raises OSError."""
        ...


class _Clear:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.write, self.tell, self.close = file.write, file.tell, file.close

    def finish(self) -> None:
        durable.flush(self._file)
        self._file.close()


def named(path: Path) -> Path:
    """What a file that is to lie there is called: with `.enc` where it is encrypted."""
    return path.with_name(path.name + encrypted.ENDING) if _on(path) else path


def create(path: Path, *, anew: bool = True, locked: bool = True) -> Output:
    """A file for our eyes alone, encrypted where that is on and it is to be `locked`.

    With `anew` it may replace one. Raises OSError, StoreError.
    """
    on = _on(path) if locked else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if anew else os.O_EXCL)
    key = None if on is None else on[0].key(on[1])
    file = os.fdopen(os.open(path, flags, 0o600), "wb")
    if on is None or key is None:
        return _Clear(file)
    try:
        return encrypted.Writer(file, key, on[1])
    except BaseException:
        file.close()
        raise


def opened(path: Path, by: Vault | None = None) -> BinaryIO:
    """The clear bytes of a file, encrypted or not; `by`: whose key, if not that of its directory.

    Raises OSError, StoreError; reading raises EncryptedFileError.
    """
    mark = encrypted.mark(path)
    if mark is None:
        return path.open("rb")
    found = by or vault.of(path)
    if found is None:
        raise StoreError(Worded("{path} is encrypted, and nothing says with which key", path=path))
    return encrypted.reader(path, found.key(mark))


def unlocked(file: BinaryIO, path: Path) -> BinaryIO:
    """The clear bytes of an open file that lies at `path` and is encrypted. Raises as `opened`."""
    mark, found = encrypted.mark_in(file), vault.of(path)
    if mark is None:
        wrong = Worded("{path} is not encrypted, and is called as if it were", path=path)
        raise encrypted.EncryptedFileError(wrong)
    if found is None:
        raise StoreError(Worded("{path} is encrypted, and nothing says with which key", path=path))
    file.seek(0)
    return encrypted.reader_of(file, found.key(mark))


def is_on(folder: Path) -> bool:
    """Whether what is written into a directory is encrypted. Raises StoreError."""
    return _on(folder / encrypted.ENDING) is not None


def keep(file: Path, folder: Path) -> None:
    """A copy of a file, in a directory, as it is to lie there. Raises OSError, StoreError."""
    target = named(folder / file.name)
    with file.open("rb") as source, contextlib.closing(create(target, anew=False)) as out:
        while part := source.read(_PART):
            out.write(part)
        out.finish()


def _on(path: Path) -> tuple[Vault, encrypted.KeyMark] | None:
    found = vault.of(path)
    record = found.record() if found else None
    return (found, record.key) if found and record else None  # whatever an edited config says meanwhile
