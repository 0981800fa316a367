"""When the next edit in a chat is due: Telegram bears about one change a second and chat."""

from __future__ import annotations

from goodbot.clock import Clock

_KEEP = 1000


class Pace:
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
