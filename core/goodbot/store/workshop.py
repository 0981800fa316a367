# SPDX-License-Identifier: Apache-2.0
"""Where a backup is made: a private directory beside it, on its disk, with all that is in the database.

The state directory has a note of each that is under way, so that what a killed one has left is found on
whatever disk it lies. A note is held like any `Scratch`: there locks work, as they may not on that disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

from goodbot.base import scratch
from goodbot.base.scratch import Scratch

FOLDER = "backups"
_PREFIX = ".goodbot-backup-"
_PLACE = "place"


@contextlib.contextmanager
def made(home: Path, beside: Path) -> Generator[Path]:
    """One in the directory `beside`, gone at the end; what killed ones have left goes now. Raises OSError."""
    sweep(home)
    (home / FOLDER).mkdir(mode=0o700, exist_ok=True)
    note = Scratch(home / FOLDER)
    work = beside / f"{_PREFIX}{note.path.name}"
    try:
        (note.path / _PLACE).symlink_to(work)
        work.mkdir(mode=0o700)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        note.remove()
        with contextlib.suppress(OSError):  # another one is under way
            (home / FOLDER).rmdir()


def left(home: Path) -> list[Path]:
    """What killed ones have left; changes nothing."""
    return [work for _, work in _notes(home) if work.is_dir() and not work.is_symlink()]


def sweep(home: Path) -> None:
    """Delete that; what is on a disk that is not there now, or cannot be deleted, is tried again."""
    for note, work in _notes(home):
        shutil.rmtree(work, ignore_errors=True)
        if work.parent.is_dir() and not os.path.lexists(work):
            shutil.rmtree(note, ignore_errors=True)


def _notes(home: Path) -> Iterator[tuple[Path, Path]]:
    """Notes whose process has ended, and where they lead: to nothing but what is named after them."""
    for note in scratch.abandoned(home / FOLDER):
        with contextlib.suppress(OSError):
            work = (note / _PLACE).readlink()
            if work.name == f"{_PREFIX}{note.name}":
                yield note, work
