# SPDX-License-Identifier: Apache-2.0
"""A tar of regular files, read so that nothing else in it has a meaning.

Each header is taken apart by itself: no link, device, sparse file or extended header of the format is
ever followed. What a member may be called, and how large it may be, the caller decides.
"""

from __future__ import annotations

import hashlib
import tarfile
from typing import BinaryIO

from goodbot.base.errors import GoodbotError

_BLOCK = 512
_CHUNK = 1024 * 1024


class ArchiveError(GoodbotError):
    """The file is none that goodbot made, or is damaged."""


def add(tar: tarfile.TarFile, name: str, size: int, time: float, content: BinaryIO) -> None:
    """Write one member. `time` in seconds since the epoch."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(time)
    tar.addfile(info, content)


def next_member(file: BinaryIO) -> tuple[str, int] | None:
    """Name and size of the next member, whose content comes next; None at the end. Raises ArchiveError."""
    block = file.read(_BLOCK)
    if block == bytes(_BLOCK):
        return None
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
        raise ArchiveError(f"the file was not made by goodbot, or is damaged ({error})") from error
    if info.type != tarfile.REGTYPE or info.size < 0:
        raise ArchiveError(f"{info.name[:80]!r} is no plain file: goodbot did not write this")
    return info.name, info.size


def exactly(file: BinaryIO, size: int) -> bytes:
    """So many bytes. Raises ArchiveError where the file ends before."""
    content = file.read(size)
    if len(content) != size:
        raise ArchiveError("the file is cut short")
    return content


def skip_padding(file: BinaryIO, size: int) -> None:
    """To where the next header begins, after a content of `size` bytes."""
    file.read(-size % _BLOCK)


def copy(file: BinaryIO, size: int, target: BinaryIO) -> str:
    """The content of a member to `target`; returns its sha256. Raises ArchiveError, OSError."""
    digest = hashlib.sha256()
    left = size
    while left:
        chunk = exactly(file, min(left, _CHUNK))
        digest.update(chunk)
        target.write(chunk)
        left -= len(chunk)
    skip_padding(file, size)
    return digest.hexdigest()
