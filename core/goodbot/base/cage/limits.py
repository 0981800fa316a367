# SPDX-License-Identifier: Apache-2.0
"""How much of the machine a caged child may take."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from goodbot.base.cage.places import has_card, has_gpu
from goodbot.base.machine import cgroups

_FILES = 4096
_SPARE = 4 << 30
_TIMES = 4
"""One file that it writes may be so many times as large as all that it reads: 8 bits become float32."""
_LIBRARIES, _RESERVED = 16 << 30, 1 << 30
"""Addresses that take no memory: of libraries, and for each processor."""
_LAST_WORDS = 10
"""Seconds on processors from SIGXCPU to SIGKILL, for a child that hears the first not or does not want to."""
_TO_GO, _FIRST_TO_GO = 250, 500
"""The daemon has 0: the kernel ends this one before it when memory runs out."""


def limit(
    reads: Sequence[str], *, first: bool = False, seconds: int | None = None, serves: bool = False
) -> None:
    """Limit files, memory and handles, by the size of what is read; and the `seconds` on processors.

    Where memory runs out the kernel chooses whom it ends: this one before the daemon, or before all `first`.
    """
    held = sum(map(size, reads))
    _lower(resource.RLIMIT_FSIZE, _SPARE + _TIMES * held)
    _lower(resource.RLIMIT_NOFILE, _FILES)
    if seconds is not None:
        _lower(resource.RLIMIT_CPU, seconds, last=_LAST_WORDS)
    for which, most in of_memory(held, serves=serves).items():
        _lower(which, most)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_FIRST_TO_GO if first else _TO_GO), encoding="ascii")


def of_memory(held: int, *, serves: bool) -> dict[int, int]:
    """The limits of memory that hold on this machine, for a child that reads so many bytes.

    Memory is limited to what the machine has and the model's own size: its mappings cost none. What is
    shared counts as addresses only, of which libraries, threads and allocators reserve more than they use
    (glibc's allocator 64 MB for each of eight places a processor). What a graphics card shares with a program
    are addresses, too: beside one they are not limited for what `serves` at a port, which may use it by
    Vulkan, and memory of its own is. CUDA's and ROCm's drivers reserve far more than there is memory; there
    the kernel alone decides.
    """
    if has_gpu():
        return {}
    most = memory() + held + _SPARE
    if sys.platform != "linux" or (serves and has_card()):  # a Mac may refuse the other
        return {resource.RLIMIT_DATA: most}
    addresses = most + held + _LIBRARIES + _RESERVED * (os.cpu_count() or 1)
    return {resource.RLIMIT_DATA: most, resource.RLIMIT_AS: addresses}


def memory(root: Path = Path("/")) -> int:
    """Bytes of this machine, or of the tightest control group that we are in. `root` holds `proc`, `sys`."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(group.limit for group in cgroups.memory(root))])


def size(path: str) -> int:
    """Of a file, or of the files right in a directory: what links name is none of it."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            found = (entry for entry in os.scandir(path) if entry.is_file(follow_symlinks=False))
            return sum(entry.stat().st_size for entry in found)
        return os.stat(path).st_size
    return 0


def _lower(which: int, most: int, *, last: int = 0) -> None:
    """To `most`; by so much more what cannot be put off."""
    _, hard = resource.getrlimit(which)
    end = most + last if hard == resource.RLIM_INFINITY else min(most + last, hard)
    resource.setrlimit(which, (min(most, end), end))
