# SPDX-License-Identifier: Apache-2.0
"""What a `llama-server` has compiled for the graphics card, kept for the next start.

It is in a directory that no other program uses. Whoever has taken one over through a model's files could
leave something for the next: so a model of other files begins with an empty one.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from goodbot.base import trees

logger = logging.getLogger(__name__)

FOLDER = "compiled"
_MOST = 4 << 30
"""Bytes of all vendors together. Each is told to keep less; a program need not obey."""
_EACH = 4096
"""Bytes that a file takes beside its own: of empty ones there are no millions either."""


def kept(home: Path, weights: Sequence[Path]) -> Path | None:
    """Where it is for a model of these files; None where there is no place for it. It blocks."""
    place = home / FOLDER
    try:
        mine = place / _name(weights)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in place.iterdir():
            if path != mine or not _fits(path):
                trees.remove(path, ignore_errors=True)
        mine.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        logger.warning("llama-server compiles anew at each start: %s: %s", place, error.strerror or error)
        return None
    return mine


def _name(weights: Sequence[Path]) -> str:
    found = [(str(path), stat.st_size, stat.st_mtime_ns) for path in weights for stat in [path.stat()]]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _fits(path: Path) -> bool:
    """Whether it holds no more than it may; it is looked at no further than that takes."""
    left, folders = _MOST, [str(path)]
    try:
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= _EACH + entry.stat(follow_symlinks=False).st_size
                    if left < 0:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    except OSError:  # gone meanwhile, or deeper than a path can say
        return False
    return True
