# SPDX-License-Identifier: Apache-2.0
"""When the next change in a chat is due, for platforms that bear so many a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from goodbot.base.clock import Clock

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Lets something run beside; it is cancelled when the connector stops, while it still can send."""

_KEEP = 1000


class Throttle:
    """The earliest next time for each chat, by the clock's monotonic seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}

    def due(self, chat: str) -> bool:
        """Whether something may be sent to a chat now."""
        return self._clock.monotonic() >= self._next.get(chat, 0.0)

    def hold(self, chat: str, seconds: float) -> None:
        """Nothing more for `seconds`."""
        now = self._clock.monotonic()
        if len(self._next) >= _KEEP:
            self._next = {name: at for name, at in self._next.items() if at > now}
        self._next[chat] = max(self._next.get(chat, 0.0), now + seconds)

    def forget(self, chat: str) -> None:
        """Know nothing of a chat any more."""
        self._next.pop(chat, None)


class Budget:
    """So many a second, in any second; what is more is left out."""

    def __init__(self, clock: Clock, count: int) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=count)

    def take(self) -> bool:
        """Whether one more is within it."""
        now = self._clock.monotonic()
        if len(self._times) == self._times.maxlen and now - self._times[0] < 1.0:
            return False
        self._times.append(now)
        return True
