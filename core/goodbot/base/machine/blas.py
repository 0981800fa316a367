"""The system's library for products of matrices."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


@cache
def openblas() -> bool:
    """Whether the system has OpenBLAS; if so, what is loaded from now on takes its products.

    MLX's wheel for Linux brings the reference BLAS, which is forty times as slow.
    """
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL("libopenblas.so.0", ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True
