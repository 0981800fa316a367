# SPDX-License-Identifier: Apache-2.0
"""Files that anybody may have put there: opened once, never through a link, never waited for, of a
bounded size.

A directory is opened first, and its files relative to it, so that all of them are of one directory
whatever is renamed meanwhile; what is hashed and what is parsed is one open file. Where adapters are
encrypted, a file's clear bytes are read, by its own name: on the disk it has `.enc` behind it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from goodbot.base import encrypted
from goodbot.base.errors import AdapterError, GoodbotError
from goodbot.base.worded import Worded, said_by

MAX_WEIGHTS = 16 << 30
"""Bytes. A LoRA adapter of rank 64 on a model of 70 billion weights has 3 GB."""
MAX_TEXT = 8 << 20
"""Bytes of a config, a manifest or a fingerprint."""

_PART = 1 << 20
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a pipe would wait for somebody to write into it."""


@contextlib.contextmanager
def folder(path: Path) -> Generator[int]:
    """A directory's descriptor. Raises AdapterError for a link, or what is no directory."""
    try:
        descriptor = os.open(path, _OPEN | os.O_DIRECTORY)
    except OSError as error:
        if path.is_symlink():
            link = Worded("{name} is a link: it was not made by goodbot", name=path.name)
            raise AdapterError(link) from error
        none = "{name} is missing, or no directory ({why})"
        raise AdapterError(Worded(none, name=path.name, why=error.strerror)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def plain(path: Path, *, limit: int, within: int | None = None) -> Generator[BinaryIO]:
    """Open a plain file for reading from its begin to its end.

    Args:
        path: The file. The last part must be no link.
        limit: The most bytes that the file may have.
        within: The descriptor of its directory; None opens `path` as it is.

    Yields:
        The open file.

    Raises:
        AdapterError: It is a link, a pipe, a device or a directory, too large, missing, or cannot be
            decrypted.
    """
    with sized(path, limit=limit, within=within) as (file, _):
        yield file


def read(path: Path, *, limit: int = MAX_TEXT, within: int | None = None) -> bytes:
    """Read a plain file whole.

    Args:
        path: The file. The last part must be no link.
        limit: The most bytes that the file may have.
        within: The descriptor of its directory; None opens `path` as it is.

    Returns:
        Its bytes.

    Raises:
        AdapterError: As `plain`, and where the file grows meanwhile.
    """
    with sized(path, limit=limit, within=within) as (file, size):
        content = file.read(size + 1)  # no more: so many bytes are reserved for it
    if len(content) > size:
        where = f"{path.parent.name}/{path.name}"
        raise AdapterError(Worded("{name} grows while it is read", name=where))
    return content


def sha256(path: Path, *, limit: int = MAX_WEIGHTS) -> str:
    """The hash of a plain file, in hexadecimal. Raises AdapterError."""
    with plain(path, limit=limit) as file:
        digest = hashlib.sha256()
        while part := file.read(_PART):
            digest.update(part)
        return digest.hexdigest()


@contextlib.contextmanager
def sized(path: Path, *, limit: int, within: int | None = None) -> Generator[tuple[BinaryIO, int]]:
    """Open a plain file, and say how many bytes it has in clear: see `files.plain`."""
    where = f"{path.parent.name}/{path.name}"
    descriptor, locked = _opened(path, where, within)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise AdapterError(Worded("{name} is no plain file", name=where))
    with os.fdopen(descriptor, "rb") as file:
        size = encrypted.size_in(found.st_size) if locked else found.st_size
        if size > limit:
            large = "{name} has {size} bytes, over the limit of {limit}"
            raise AdapterError(Worded(large, name=where, size=size, limit=limit))
        if not locked:
            yield file, size
            return
        from goodbot.config import private  # children that load adapters have no key, and need none of it

        try:
            with private.unlocked(file, path) as clear:
                yield clear, size
        except AdapterError:
            raise
        except GoodbotError as error:
            wrong = Worded("{name} cannot be decrypted: {why}", name=where, why=said_by(error))
            raise AdapterError(wrong) from error


def _opened(path: Path, where: str, within: int | None) -> tuple[int, bool]:
    """A file's descriptor, and whether it is encrypted. Raises AdapterError."""
    sealed = path.with_name(path.name + encrypted.ENDING)
    try:
        try:
            return os.open(path if within is None else path.name, _OPEN, dir_fd=within), False
        except FileNotFoundError:
            return os.open(sealed if within is None else sealed.name, _OPEN, dir_fd=within), True
    except OSError as error:
        if _is_link(path) or _is_link(sealed):
            raise AdapterError(Worded("{name} is no plain file, but a link", name=where)) from error
        gone = Worded("{name} is missing ({why})", name=where, why=error.strerror)
        raise AdapterError(gone) from error


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False
