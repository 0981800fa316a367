# SPDX-License-Identifier: Apache-2.0
"""The dead that fall to us: whoever runs first in a container has to bury what its children leave behind.

The process that watches a model server (`goodbot.base.cage.tie`) ends after it, and its parent is gone then.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")


class Orphans:
    """Takes them off the kernel's list; to be asked again and again."""

    def __init__(self) -> None:
        self._dead: set[int] = set()

    def bury(self) -> None:
        """Bury whoever was dead at the last look, too: who waits for a child of theirs takes it at once."""
        dead = set(_dead()) if _some() else set[int]()
        for pid in dead & self._dead:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._dead = dead - self._dead


def _some() -> bool:
    """Whether anybody is dead at all; nobody is taken off the list."""
    if sys.platform != "linux":  # elsewhere orphans go to the system's own
        return False
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _dead() -> Iterator[int]:
    for place in _PROCESSES.iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it is gone meanwhile
                state, parent = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                if state == "Z" and int(parent) == os.getpid():
                    yield int(place.name)
