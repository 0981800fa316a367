"""How much of the machine a caged child may take."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from goodbot.cage.places import has_gpu

_FILES = 4096
_SPARE = 4 << 30
_TIMES = 4
"""Of the files that it reads, what one file that it writes may have: float32 of a model that is 8 bits."""
_FIRST_TO_GO = 250
"""Beside the daemon's 0, where the kernel looks for somebody to end when memory runs out."""


def limit(reads: Sequence[str]) -> None:
    """Files, memory and handles, as they fit to what is read.

    Memory is what the machine has, and the model's own size, whose mappings cost none. A GPU's driver
    reserves addresses beyond any measure: there the kernel decides who goes when memory is out.
    """
    size = sum(map(_size, reads))
    _lower(resource.RLIMIT_FSIZE, _SPARE + _TIMES * size)
    _lower(resource.RLIMIT_NOFILE, _FILES)
    if not has_gpu():
        _lower(resource.RLIMIT_DATA, _memory() + size + _SPARE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_FIRST_TO_GO), encoding="ascii")


def _memory() -> int:
    """Of this machine, or of the container that we are in."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        return min(whole, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return whole


def _size(path: str) -> int:
    """Of a file, or of the files right in a directory."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
        return os.stat(path).st_size
    return 0


def _lower(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))
