# SPDX-License-Identifier: Apache-2.0
"""Where files that are encrypted on the disk lie in clear, for children and servers that must read them.

It is a private directory of this process on the file system that Linux keeps in memory, under a name that no
caged child can find out. It goes when the process ends; what a killed one has left goes at the next start, or
with the next process that needs one. Where there is no such file system, it is in the state directory.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import threading
from pathlib import Path

from goodbot.base import scratch
from goodbot.base.cage import places
from goodbot.base.errors import StoreError
from goodbot.base.scratch import Scratch
from goodbot.base.worded import Worded
from goodbot.config import vault

FOLDER = "clear"
"""In the state directory, where there is no memory for it."""
_MEMORY = Path(places.SHARED_MEMORY)
PREFIX = places.CLEAR
_rooms: dict[Path, Scratch] = {}
"""By what is in clear there: who knows where adapters lie does not know where a training does."""
_making = threading.Lock()


def in_memory() -> bool:
    """Whether this machine keeps a file system in memory that we may use."""
    return os.path.ismount(_MEMORY) and os.access(_MEMORY, os.W_OK | os.X_OK)


def of(folder: Path) -> Path:
    """Where a directory of the state directory is in clear: itself, or its like in memory.

    The like is not made here. Raises StoreError.
    """
    home = _encrypted(folder)
    if home is None:
        return folder
    place = folder.absolute()
    with _making:
        if place not in _rooms:
            _rooms[place] = apart(home)
            atexit.register(leave, home)
        try:
            _rooms[place].restore()  # systemd empties a user's /dev/shm when he logs out (RemoveIPC)
        except OSError as error:
            raise _no_place(_rooms[place].path, error) from error
        return _rooms[place].path / folder.name


def is_apart(folder: Path) -> bool:
    """Whether `of` is elsewhere: what lies in it is encrypted. Raises StoreError."""
    return _encrypted(folder) is not None


def apart(home: Path) -> Scratch:
    """A private directory in clear of one's own, in `root`, which nobody finds who is not told its name.

    Raises StoreError.
    """
    place = root(home)
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        scratch.sweep(place, PREFIX)
        return Scratch(place, f"{_whose(home)}{secrets.token_hex(16)}-")
    except OSError as error:
        raise _no_place(place, error) from error


def root(home: Path) -> Path:
    """In which directory such ones are."""
    return _MEMORY if in_memory() else home / FOLDER


def leave(home: Path) -> None:
    """Delete what this process has in clear of a state directory; idempotent."""
    with _making:
        for place in [one for one in _rooms if one.is_relative_to(home.absolute())]:
            _rooms.pop(place).remove()


def sweep(home: Path) -> None:
    """Delete what processes that were killed have left, of whichever state directory."""
    scratch.sweep(root(home), PREFIX)


def abandoned(home: Path) -> list[Path]:
    """What killed ones have left of this state directory; changes nothing."""
    return scratch.abandoned(root(home), _whose(home))


def _whose(home: Path) -> str:
    """How the names of a state directory's own begin."""
    return f"{PREFIX}{hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:12]}-"


def _encrypted(folder: Path) -> Path | None:
    """The state directory that it lies in, if what lies there is encrypted."""
    found = vault.of(folder)
    return found.home.absolute() if found is not None and found.record() is not None else None


def _no_place(place: Path, error: OSError) -> StoreError:
    wrong = "what is encrypted cannot be laid in clear into {place}: {why}"
    return StoreError(Worded(wrong, place=place, why=error.strerror or str(error)))
