# SPDX-License-Identifier: Apache-2.0
"""What the C library keeps of memory that is free again."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h."""
_LARGE = 1 << 20


def give_back_large() -> None:
    """Have memory that is freed in pieces of a megabyte or more go back to the system at once.

    glibc learns to keep pieces of up to 32 MiB. Where layers are computed again for the gradient, those lie
    between the ones that live: the process was seen to hold three times of what lived. It costs time in
    models that are so small that their pieces are: their pages are made anew for each.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
