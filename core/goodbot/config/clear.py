# SPDX-License-Identifier: Apache-2.0
"""Where files that are encrypted on the disk lie in clear, for children and servers that must read them.

It is a private directory of this process on the file system that Linux keeps in memory, under a name that no
caged child can find out. It goes when the process ends; what a killed one has left goes at the next start, or
with the next process that needs one. Where there is no such file system, it is in the state directory.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from pathlib import Path

from goodbot.base import scratch
from goodbot.base.scratch import Scratch
from goodbot.config import vault

FOLDER = "clear"
"""In the state directory, where there is no memory for it."""
_MEMORY = Path("/dev/shm")  # noqa: S108  a directory of ours in it is 0700, and never found by its name
PREFIX = "goodbot-clear-"
_rooms: dict[Path, Scratch] = {}
"""By state directory."""
_making = threading.Lock()


def in_memory() -> bool:
    """Whether this machine keeps a file system in memory that we may use."""
    return os.path.ismount(_MEMORY) and os.access(_MEMORY, os.W_OK | os.X_OK)


def of(folder: Path) -> Path:
    """Where a directory of the state directory is in clear: itself, or its like in memory.

    The like is not made here. Raises OSError, StoreError.
    """
    home = _encrypted(folder)
    if home is None:
        return folder
    with _making:
        if home not in _rooms or not _rooms[home].path.is_dir():
            if home not in _rooms:
                atexit.register(leave, home)
            _rooms[home] = apart(home)
        return _rooms[home].path / folder.absolute().relative_to(home)


def is_apart(folder: Path) -> bool:
    """Whether `of` is elsewhere: what lies in it is encrypted. Raises StoreError."""
    return _encrypted(folder) is not None


def apart(home: Path) -> Scratch:
    """A private directory in clear of one's own, in `root`, which nobody finds who is not told its name.

    Raises OSError.
    """
    place = root(home)
    place.mkdir(mode=0o700, exist_ok=True)
    scratch.sweep(place, PREFIX)
    return Scratch(place, f"{PREFIX}{secrets.token_hex(16)}-")


def root(home: Path) -> Path:
    """In which directory such ones are."""
    return _MEMORY if in_memory() else home / FOLDER


def leave(home: Path) -> None:
    """Delete what this process has in clear of a state directory; idempotent."""
    with _making:
        if (room := _rooms.pop(home.absolute(), None)) is not None:
            room.remove()


def sweep(home: Path) -> None:
    """Delete what processes that were killed have left."""
    scratch.sweep(root(home), PREFIX)


def abandoned(home: Path) -> list[Path]:
    """That; changes nothing."""
    return scratch.abandoned(root(home), PREFIX)


def _encrypted(folder: Path) -> Path | None:
    """The state directory that it lies in, if what lies there is encrypted."""
    found = vault.of(folder)
    return found.home.absolute() if found is not None and found.record() is not None else None
