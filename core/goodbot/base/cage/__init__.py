# SPDX-License-Identifier: Apache-2.0
"""What a child goes through before it is itself: `python -P -m goodbot.base.cage TOLD PROGRAM …`.

`goodbot.base.spawn` starts every program this way. This small process ties itself to its parent, takes
from itself what the child shall not have, and becomes the child by `exec`: so nothing of the child ever
runs without it, and its process id is the one that the parent knows. Nothing here imports more than the
standard library.
"""

from __future__ import annotations

import sys

hidden: set[str] = set()
"""State directories: never part of what a caged child reads, whatever they lie in."""

_PR_SET_DUMPABLE = 4


def missing() -> list[str]:
    """What this machine lacks of a cage; empty where it is whole."""
    if sys.platform == "linux":
        from goodbot.base.cage import linux

        return linux.missing()
    if sys.platform == "darwin":
        from goodbot.base.cage import macos

        return macos.missing()
    return ["any way to lock a program up"]


def keep_to_itself() -> None:
    """This process holds people's words and tokens: no core dump, and no other program looks into it."""
    no_core_dump()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def no_core_dump() -> None:
    """A crash writes none, from here on."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
