# SPDX-License-Identifier: Apache-2.0
"""What computes for long stands behind what somebody waits for.

`GOODBOT_KEEP_PRIORITY=1` leaves the priority as it is: where others compute all the time, whoever stands
behind them never ends.
"""

from __future__ import annotations

import contextlib
import os
import sys

KEEP = "GOODBOT_KEEP_PRIORITY"
NICENESS = 10
_PRIO_DARWIN_PROCESS, _PRIO_DARWIN_BG = 4, 0x1000
"""From <sys/resource.h>."""


def give_way() -> None:
    """Let the chat go first. Best effort."""
    if not _kept():
        with contextlib.suppress(OSError, AttributeError):
            os.nice(NICENESS)


def stand_back(platform: str = sys.platform) -> None:
    """Take only what nobody else wants of processors and disks: nobody waits. Best effort.

    Linux's idle policy brings the idle class of disk accesses along (ioprio_set(2)); macOS' background
    state (setpriority(2), PRIO_DARWIN_BG) also keeps to the efficient cores.
    """
    if _kept():
        return
    with contextlib.suppress(OSError, AttributeError):
        if platform == "linux":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        elif platform == "darwin":
            os.setpriority(_PRIO_DARWIN_PROCESS, 0, _PRIO_DARWIN_BG)


def _kept() -> bool:
    return os.environ.get(KEEP) == "1"
