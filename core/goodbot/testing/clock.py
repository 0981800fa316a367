# SPDX-License-Identifier: Apache-2.0
"""`VirtualClock`: time that a test makes pass."""

from __future__ import annotations

import asyncio


class VirtualClock:
    """A `goodbot.base.clock.Clock` whose time passes only when something says so; all in seconds.

    By default `sleep` itself makes its time pass, and returns at once. With `waits` a sleeper waits
    until `advance` has reached its moment. `slept` lists what was asked for.
    """

    def __init__(self, now: float = 1_800_000_000.0, *, waits: bool = False) -> None:
        self.slept: list[float] = []
        self._wall = now
        self._monotonic = now
        self._waits = waits
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the wall clock, in seconds since the epoch."""
        return self._wall

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Note it in `slept`, and let the time pass; with `waits` return when it has passed."""
        self.slept.append(seconds)
        if not self._waits:
            self.advance(seconds)
        if not self._waits or seconds <= 0:
            await asyncio.sleep(0)
            return
        waiting = asyncio.get_running_loop().create_future()
        sleeper = (self._monotonic + seconds, waiting)
        self._sleepers.append(sleeper)
        try:
            await waiting
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Let time pass; whoever slept long enough goes on when the caller next awaits."""
        self._wall += seconds
        self._monotonic += seconds
        for at, waiting in self._sleepers:
            if at <= self._monotonic and not waiting.done():
                waiting.set_result(None)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or, if negative, back, as an administrator or NTP does."""
        self._wall += seconds
