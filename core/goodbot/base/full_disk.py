# SPDX-License-Identifier: Apache-2.0
"""Whether it is the disk that has no room left, whoever says so."""

from __future__ import annotations

import errno
import os

from goodbot.base.errors import StoreFullError, TrainingError

KIND = "disk"
"""Of a TrainingError."""
SENTENCE = "The disk is full: free some space."
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = tuple(words for code in _FULL for words in (os.strerror(code), f"(os error {code})"))
_DEEPEST = 8


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
