# SPDX-License-Identifier: Apache-2.0
"""How long a test waits: a busy or a slow machine gets more time, and none of the tests fails for it."""

from __future__ import annotations

import os
import time

_LOOP = 200_000
_QUIET_SECONDS = 0.018
"""What the loop takes on a quiet machine of the year 2024."""
_LONGEST = 20.0
_KEPT_SECONDS = 5.0

_measured = (float("-inf"), 1.0)
"""When it was measured last, and what came out."""


def slowness() -> float:
    """How many times longer than on a quiet machine something takes now: 1 to 20.

    The greater one of what a small loop takes, and of what wants to run on each processor.
    """
    global _measured
    if time.monotonic() - _measured[0] > _KEPT_SECONDS:
        found = max(1.0, _loop_seconds() / _QUIET_SECONDS, _wanted())
        _measured = time.monotonic(), min(found, _LONGEST)
    return _measured[1]


def patience(seconds: float) -> float:
    """What to wait at most, as the machine is now, for what takes `seconds` at most on a quiet one."""
    return seconds * slowness()


def _loop_seconds() -> float:
    began = time.perf_counter()
    number = 0
    for step in range(_LOOP):
        number += step * step
    return time.perf_counter() - began


def _wanted() -> float:
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows has none
        return 1.0
