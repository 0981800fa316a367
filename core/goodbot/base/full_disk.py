# SPDX-License-Identifier: Apache-2.0
"""Whether the disk has room, and whether it is the disk that has none left, whoever says so."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from goodbot.base.errors import StoreFullError, TrainingError

RESERVE = 500_000_000
"""Bytes of a disk that are left to what is small and must not be lost."""
KIND = "disk"
"""Of a TrainingError."""
SENTENCE = "The disk is full: free some space."
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = tuple(words for code in _FULL for words in (os.strerror(code), f"(os error {code})"))
_DEEPEST = 8
_MEGABYTE = 1_000_000


def lacking(home: Path, ahead: int = 0) -> int:
    """How many megabytes have to be free, of which not so many are, for so many bytes `ahead` below `home`.

    The `RESERVE` is left beside them. 0: there is room, or the disk does not say.
    """
    wanted = RESERVE + ahead
    try:
        enough = _free(home) >= wanted
    except OSError:
        return 0  # whoever writes there says what is wrong with it
    return 0 if enough else -(-wanted // _MEGABYTE)


def _free(home: Path) -> int:
    return shutil.disk_usage(home).free


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that there is no room, or no quota, left.

    A library that is not written in Python says it in words alone.
    """
    for _ in range(_DEEPEST):
        if error is None:
            return False
        if isinstance(error, StoreFullError) or (isinstance(error, TrainingError) and error.kind == KIND):
            return True
        if error.errno in _FULL if isinstance(error, OSError) else any(one in str(error) for one in _WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False
