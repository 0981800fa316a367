"""The system's library for products of matrices."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache

_NAMES = ("libopenblasp.so.0", "libopenblas.so.0")
"""Fedora gives the one with threads a name of its own; the other one has none there."""


@cache
def openblas() -> bool:
    """Whether the system has OpenBLAS; if so, what is loaded from now on takes its products.

    MLX's wheel for Linux brings the reference BLAS, which is forty times as slow.
    """
    if sys.platform != "linux":
        return False
    for name in _NAMES:
        with suppress(OSError):
            ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
            return True
    return False
