# SPDX-License-Identifier: Apache-2.0
"""How often one person may ask, and how much of what one person sends is kept."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from goodbot.api.sentences import Reason, because
from goodbot.base import full_disk
from goodbot.base.clock import Clock
from goodbot.config import ServingConfig

CODES_ANSWERED = 5
"""Of a stranger's wrong pairing codes and `forget me`, so many an hour are answered; more meet silence."""
TOO_MANY = "too_many"
"""The code of what somebody is told who has rated and commanded too often."""
AT_WORK = "at_work"
"""The code of what somebody is told of whom too much is under way at once."""
BUSY = "busy"
"""The code of what is told where too much of a crowd is under way at once."""
PEOPLE_AT_ONCE = 10
"""A program that speaks for many people may say so many times as much as one person."""
_MEGABYTE = 1_000_000
_HOUR = 3600.0
_DAY = 86400.0
_REMEMBERED = 4096
"""People; the one who has been quiet longest is forgotten first, with a full bucket."""


Undo = Callable[[], object]
"""Takes back that something was counted."""


class RateLimit:
    """A token bucket a person, on the monotonic clock: at most `most` at once, and so many `seconds`."""

    def __init__(
        self, most: float, clock: Clock, seconds: float = 60.0, note: Callable[[Undo], None] | None = None
    ) -> None:
        """`note` is given what takes back each thing that was counted."""
        self._note = note
        self._most = float(most)
        self._rate = most / seconds
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, person: str) -> float:
        """How much this one may have now."""
        return self._tokens(person, self._clock.monotonic())

    def allow(self, person: str, amount: float = 1.0) -> bool:
        """Whether this one may have so much now; if so it counts."""
        now = self._clock.monotonic()
        tokens = self._tokens(person, now)
        self._buckets.pop(person, None)  # it comes last again
        allowed = tokens >= amount
        self._buckets[person] = (tokens - amount if allowed else tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        if allowed and self._note is not None:
            self._note(partial(self._give_back, person, amount))
        return allowed

    def _tokens(self, person: str, now: float) -> float:
        tokens, at = self._buckets.get(person, (self._most, now))
        return min(self._most, tokens + (now - at) * self._rate)

    def _give_back(self, person: str, amount: float) -> None:
        if person in self._buckets:  # whoever was forgotten has a full one
            tokens, at = self._buckets[person]
            self._buckets[person] = (min(self._most, tokens + amount), at)


class _Numbers:
    """How many a day: of a person, of each whom a program speaks for, and of it with all of these."""

    def __init__(self, most: int, clock: Clock, note: Callable[[Undo], None]) -> None:
        self._most = most
        self._own = RateLimit(most, clock, _DAY, note)
        self._each = RateLimit(most, clock, _DAY, note)
        self._all = RateLimit(PEOPLE_AT_ONCE * most, clock, _DAY, note)

    def refuse(self, person: str, speaks_for: str) -> int:
        """The number that is reached; 0: one more counts."""
        counted, who = (self._each, f"{person}\0{speaks_for}") if speaks_for else (self._own, person)
        # Only what is taken counts: one of them who says too much takes nothing from the others.
        if counted.left(who) < 1:
            return self._most
        if not self._all.allow(person):
            return PEOPLE_AT_ONCE * self._most
        counted.allow(who)
        return 0


class Quotas:
    """What one person may send, and the reserve of the disk that `home` lies on."""

    def __init__(self, config: ServingConfig, home: Path, clock: Clock) -> None:
        note = self.note
        self.messages = RateLimit(config.messages_per_minute, clock, note=note)
        self.codes = RateLimit(CODES_ANSWERED, clock, _HOUR, note)
        self._megabytes = config.megabytes_per_day
        self._bytes = RateLimit(self._megabytes * _MEGABYTE, clock, _DAY, note)
        self._given = _Numbers(config.ratings_per_day, clock, note)
        self._taken_back = _Numbers(config.ratings_per_day, clock, note)
        self.strangers = 0
        """How often people who may not even talk have tried commands of owners: that leaves no rows."""
        self._home = home
        self._undo: list[Undo] | None = None

    @contextlib.contextmanager
    def counting(self, undo: list[Undo]) -> Generator[None]:
        """Within, add to `undo` what takes back each thing that is counted: the disk may not take it.

        Within one transaction, of which there is one at a time.
        """
        self._undo = undo
        try:
            yield
        finally:
            self._undo = None

    def note(self, undo: Undo) -> None:
        """One more thing that is to be taken back with what is counted."""
        if self._undo is not None:
            self._undo.append(undo)

    def too_much(self, person: str, size: int, *, counts: bool = True) -> Reason | None:
        """Why so many bytes more of somebody's are not kept; None: they are, and count unless only asked."""
        fits = self._bytes.allow(person, size) if counts else self._bytes.left(person) >= size
        return None if fits else because("too_much", megabytes=self._megabytes)

    def too_many(self, person: str, *, speaks_for: str = "", back: bool = False) -> Reason | None:
        """Why one more rating or command of somebody's is not taken; None: it counts.

        What takes something `back` is counted apart: who may say so much may take all of it back.
        A program's count is one for each whom it `speaks_for`.
        """
        most = (self._taken_back if back else self._given).refuse(person, speaks_for)
        return because("too_many", most=most) if most else None

    def no_reserve(self, why: str = "no_space") -> Reason | None:
        """The sentence `why` where too little of the disk is free for all but ratings; None: enough is."""
        return no_reserve(self._home, why)


def no_reserve(home: Path, why: str = "no_space", *, ahead: int = 0) -> Reason | None:
    """As `Quotas.no_reserve`, before so many bytes `ahead` are written below `home`."""
    megabytes = full_disk.lacking(home, ahead)
    return because(why, megabytes=megabytes) if megabytes else None
