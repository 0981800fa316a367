# SPDX-License-Identifier: Apache-2.0
"""Time is injected: nothing else in goodbot calls `time.time()` or `asyncio.sleep()`."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the core knows of time. All values in seconds."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch. May jump."""
        ...

    def monotonic(self) -> float:
        """Never goes back; its zero means nothing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def growing(tries: int, *, first: float = 1.0, most: float) -> float:
    """Return the seconds to wait after so many failed tries: twice as long each time, up to `most`."""
    return min(most, first * 2.0 ** min(tries, 64))  # a power of any size is no float


async def woken(
    event: asyncio.Event, clock: Clock, seconds: float, *, not_before: float | None = None
) -> None:
    """Return when `event` is set, or after `seconds`; at the earliest at a moment of `monotonic`."""
    waits = [
        asyncio.create_task(event.wait(), name="woken"),
        asyncio.create_task(clock.sleep(seconds), name="timer"),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if not_before is not None and (rest := not_before - clock.monotonic()) > 0:
        await clock.sleep(rest)
