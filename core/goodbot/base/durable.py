# SPDX-License-Identifier: Apache-2.0
"""Files that are on the disk, and whole, when a function returns."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, BinaryIO


def private(path: Path, mode: int = 0o600) -> BinaryIO:
    """A new file for its owner alone in the place of what lay there, open to be written. Raises OSError.

    A link is no way to another file: it goes, and what it led to stays as it is.
    """
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")


def flush(file: IO[bytes]) -> None:
    """Return once what was written to an open file is on the disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Return once a file, or a directory's entries, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Write a file where nobody reads yet. Raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        flush(file)


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a file of its owner's in the place of another in one step; what fails changes nothing.

    Raises OSError.
    """
    partial = path.with_name(f"{path.name}.new")
    try:
        with private(partial, mode) as file:
            file.write(content)
            flush(file)
        partial.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
