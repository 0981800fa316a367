"""How often one person may ask: a token bucket each, on the monotonic clock."""

from __future__ import annotations

from collections import OrderedDict

from goodbot.clock import Clock

_REMEMBERED = 4096
"""People; the one who has been quiet longest is forgotten first, with a full bucket."""


class RateLimit:
    """At most `per_minute` at once, and as many again each minute."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, person: str) -> bool:
        """Whether this one may now; if so it counts."""
        now = self._clock.monotonic()
        tokens, at = self._buckets.pop(person, (float(self._per_minute), now))
        tokens = min(self._per_minute, tokens + (now - at) * self._per_minute / 60)
        allowed = tokens >= 1
        self._buckets[person] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return allowed
