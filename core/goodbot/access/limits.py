# SPDX-License-Identifier: Apache-2.0
"""How often one person may ask, and how much of what one person sends is kept."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from pathlib import Path

from goodbot.api.sentences import Reason, because
from goodbot.base.clock import Clock
from goodbot.config import ServingConfig

RESERVE = 500_000_000
"""Bytes of the disk that are left to ratings: with less, no answers of other programs are kept."""
CODES_ANSWERED = 5
"""Wrong pairing codes of one person, within an hour, that are answered; more meet silence."""
TOO_MANY = "too_many"
"""The code of what somebody is told who has rated and commanded too often."""
_MEGABYTE = 1_000_000
_HOUR = 3600.0
_DAY = 86400.0
_REMEMBERED = 4096
"""People; the one who has been quiet longest is forgotten first, with a full bucket."""


class RateLimit:
    """A token bucket a person, on the monotonic clock: at most `most` at once, and so many `seconds`."""

    def __init__(self, most: float, clock: Clock, seconds: float = 60.0) -> None:
        self._most = float(most)
        self._rate = most / seconds
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, person: str, amount: float = 1.0) -> bool:
        """Whether this one may have so much now; if so it counts."""
        now = self._clock.monotonic()
        tokens, at = self._buckets.pop(person, (self._most, now))
        tokens = min(self._most, tokens + (now - at) * self._rate)
        allowed = tokens >= amount
        self._buckets[person] = (tokens - amount if allowed else tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return allowed


class Quotas:
    """What one person may send, and the reserve of the disk that `home` lies on."""

    def __init__(self, config: ServingConfig, home: Path, clock: Clock) -> None:
        self.messages = RateLimit(config.messages_per_minute, clock)
        self.codes = RateLimit(CODES_ANSWERED, clock, _HOUR)
        self._megabytes = config.megabytes_per_day
        self._bytes = RateLimit(self._megabytes * _MEGABYTE, clock, _DAY)
        self._most = config.ratings_per_day
        self._given = RateLimit(self._most, clock, _DAY)
        self._taken_back = RateLimit(self._most, clock, _DAY)
        self._home = home

    def too_much(self, person: str, size: int) -> Reason | None:
        """Why so many bytes more of somebody's are not kept; None: they count."""
        return None if self._bytes.allow(person, size) else because("too_much", megabytes=self._megabytes)

    def too_many(self, person: str, *, back: bool = False) -> Reason | None:
        """Why one more rating or command of somebody's is not taken; None: it counts.

        What takes something `back` is counted apart: who may say so much may take all of it back.
        """
        counted = self._taken_back if back else self._given
        return None if counted.allow(person) else because("too_many", most=self._most)

    def no_reserve(self, why: str = "no_space") -> Reason | None:
        """The sentence `why` where too little of the disk is free for all but ratings; None: enough is."""
        return no_reserve(self._home, why)


def no_reserve(home: Path, why: str = "no_space", *, ahead: int = 0) -> Reason | None:
    """As `Quotas.no_reserve`, before so many bytes `ahead` are written below `home`."""
    try:
        free = shutil.disk_usage(home).free
    except OSError:
        return None  # the store says what is wrong with the disk
    return None if free - ahead >= RESERVE else because(why, megabytes=RESERVE // _MEGABYTE)
