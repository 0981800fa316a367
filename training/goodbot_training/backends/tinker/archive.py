# SPDX-License-Identifier: Apache-2.0
"""The archive that a server gives of an adapter: two files are read out of it, by name, into ours."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from goodbot.api.adapters.files import MAX_TEXT, MAX_WEIGHTS
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.backends.adapters import CONFIG_FILE, WEIGHTS_FILE

_LARGEST = {WEIGHTS_FILE: MAX_WEIGHTS, CONFIG_FILE: MAX_TEXT}
_MEMBERS = 100
_PART = 1 << 20
_DAMAGED = (
    *(tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError),
    *(MemoryError, RecursionError),  # of a header as large, or of as many of them, as its maker likes
)


def unpack(archive: BinaryIO, directory: Path) -> None:
    """Write an adapter's two files. No path, link or right of the archive means anything.

    Raises AdapterError for an archive without them, or one that cannot be read to its end.
    """
    found, left = set[str](), MAX_WEIGHTS
    try:
        with tarfile.open(fileobj=archive, mode="r:*") as tar:
            for number, member in enumerate(tar):
                name = PurePosixPath(member.name).name
                left -= member.size  # also what is passed over has to be unpacked
                if number == _MEMBERS or left < 0:
                    raise AdapterError(Worded("The server's archive holds far more than an adapter."))
                if not member.isreg() or name not in _LARGEST:
                    continue
                if name in found or member.size > _LARGEST[name]:
                    odd = "The server's archive holds {name} twice, or far too large."
                    raise AdapterError(Worded(odd, name=name))
                _copy(tar, member, directory / name)
                found.add(name)
    except _DAMAGED as error:
        raise AdapterError(Worded("The server's archive cannot be read: {why}.", why=str(error))) from error
    if missing := sorted({*_LARGEST} - found):
        lacks = "The server's archive is no adapter: it lacks {names}."
        raise AdapterError(Worded(lacks, names=", ".join(missing)))


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = tar.extractfile(member)
    left = member.size
    with target.open("xb") as file:
        while content is not None and left and (part := content.read(min(_PART, left))):
            file.write(part)
            left -= len(part)
    if left:
        raise AdapterError(Worded("The server's archive is cut short."))
