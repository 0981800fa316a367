# SPDX-License-Identifier: Apache-2.0
"""Time is injected: nothing else in goodbot calls `time.time()` or `asyncio.sleep()`."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Protocol

_DAY = 86400.0


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


def ago(at: float, now: float) -> float:
    """Return the seconds since a stored moment; without end since one that lies ahead.

    There our clock was set back since, and nobody knows how long ago it was.
    """
    return now - at if at <= now else math.inf


class Reached:
    """Counts from a stored moment of which it is waited for how long ago it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = (0.0, 0.0)

    def past(self, at: float) -> float:
        """Return the moment; one that lies ahead counts as when it was first asked for.

        Our clock was set back since: it would be waited for until that has come again.
        """
        now = self._clock.now()
        if at <= now:
            return at
        if self._ahead[0] != at:
            self._ahead = (at, now)
        return min(self._ahead[1], now)


class Steady:
    """Whether this machine's clock goes on as time does: what it says when it jumps ahead may be wrong."""

    def __init__(self, clock: Clock, lasts: float = 3600.0) -> None:
        """A jump of more than `lasts` seconds is believed once so many have passed.

        Until then somebody may set it right.
        """
        self._clock, self._lasts = clock, lasts
        self._looked = clock.now(), clock.monotonic()
        self._until = -math.inf

    def started(self, seen: float) -> None:
        """Say when something was stored last, by the clock of then: a day after it, it may have jumped since.

        Not an hour: who starts goodbot each day, and never for long, is believed as well.
        """
        if self._clock.now() - seen > _DAY:
            self._until = self._clock.monotonic() + self._lasts

    def look(self) -> bool:
        """Return whether it may be believed; to be asked again and again.

        A machine that slept has jumped as well: one that wakes each day, and never for long, is believed
        once it was awake for so long in all.
        """
        (wall, before), (now, passed) = self._looked, (self._clock.now(), self._clock.monotonic())
        jump = now - wall - (passed - before)
        if jump > _DAY or (jump > self._lasts and passed >= self._until):
            self._until = passed + self._lasts
        self._looked = now, passed
        return passed >= self._until


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
