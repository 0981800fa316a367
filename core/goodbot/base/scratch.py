# SPDX-License-Identifier: Apache-2.0
"""Directories that belong to one process, and go when it has ended.

Whoever lives holds the lock of its own. A process id would not tell: in a container each goodbot is
number 1, and several may share one directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from goodbot.base import trees


class Scratch:
    """A new private directory in `root`, held until `remove`. Raises OSError."""

    def __init__(self, root: Path, prefix: str = "") -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=root)).resolve()
            if (handle := _held(self.path)) is not None:
                self._handle = handle
                return  # else somebody swept it before it was held

    def restore(self) -> None:
        """Make it anew, empty, where somebody else has deleted it. Raises OSError."""
        if os.fstat(self._handle).st_nlink and self.path.exists():
            return
        self.path.mkdir(mode=0o700)
        if (handle := _held(self.path)) is None:
            raise BlockingIOError(errno.EWOULDBLOCK, "somebody else holds it", str(self.path))
        os.close(self._handle)
        self._handle = handle

    def remove(self) -> None:
        """Delete it with all that is in it."""
        trees.remove(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Leave it, as if this process had ended."""
        os.close(self._handle)


def sweep(root: Path, prefix: str = "") -> None:
    """Delete those whose process has ended."""
    for path, handle in _abandoned(root, prefix):
        trees.remove(path, ignore_errors=True)
        os.close(handle)


def abandoned(root: Path, prefix: str = "") -> list[Path]:
    """Those whose process has ended; changes nothing."""
    found: list[Path] = []
    for path, handle in _abandoned(root, prefix):
        os.close(handle)
        found.append(path)
    return sorted(found)


def _abandoned(root: Path, prefix: str) -> Iterator[tuple[Path, int]]:
    for path in root.glob(f"{prefix}*"):
        if (handle := _held(path)) is not None:
            yield path, handle


def _held(path: Path) -> int | None:
    """The handle that holds it; None if somebody else does, or it is gone or no directory of ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = os.fstat(handle).st_uid == os.geteuid() and path.exists()
    except OSError:
        ours = False
    if ours:
        return handle
    os.close(handle)
    return None
