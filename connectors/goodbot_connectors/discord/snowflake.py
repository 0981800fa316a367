# SPDX-License-Identifier: Apache-2.0
"""Discord's ids, which hold the time at which it gave them, and what comes without one in their order."""

from __future__ import annotations

from goodbot.api.events import OrderKey

_EPOCH_MS = 1_420_070_400_000
_LARGEST = 1 << 63
_STALE_MS = 30_000
_ABSURD_MS = 86_400_000


def identifier(value: object) -> str:
    """`value` if it is an id, else nothing."""
    good = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 19
    return value if good and isinstance(value, str) and 0 < int(value) < _LARGEST else ""


def time_ms(id_: str) -> int:
    """When Discord gave this id, in milliseconds since 1970."""
    return (int(id_) >> 22) + _EPOCH_MS


def at(ms: int) -> int:
    """The first id of a millisecond."""
    return max(0, ms - _EPOCH_MS) << 22


def order(id_: str, n: int = 0) -> OrderKey:
    """The order of what has an id of its own; `n` counts the events that are made of it."""
    return OrderKey(time_ms(id_), f"{int(id_):020d}:{n:010d}")


class Timeline:
    """Discord's time, as far as we know it: reactions come without one.

    What was seen last with an id came before them, and what is seen next comes after, so they share
    the time of the last id and are told apart by their place in the session. Our own clock only helps
    when there was none for half a minute: two clocks are never quite alike. What it has a part in is
    `OrderKey.ours`: between then and now it may have jumped.
    """

    def __init__(self) -> None:
        self.mark = 0
        """The newest id that was seen, or one that stands for a later time."""
        self._newest = 0
        """The newest id that Discord has given."""
        self._asked = 0
        """The same of the last time that we asked who has reacted; what came meanwhile may be unseen."""
        self._lead_ms = 0
        """How far our clock is ahead of Discord's, the message's way to us included."""

    def seen(self, id_: str, now_ms: int) -> None:
        """Something with this id has just come."""
        if time_ms(id_) > now_ms + _ABSURD_MS:
            return
        self._lead_ms = now_ms - time_ms(id_)
        self._newest = max(self._newest, int(id_))
        self.mark = max(self.mark, self._newest)

    def began(self, now_ms: int) -> None:
        """A new session counts from one again: what comes in it must not fall among the last one's."""
        self.mark = max(self.mark + 1, self._asked + 1, at(now_ms - self._lead_ms))

    def now(self, sequence: int, now_ms: int) -> OrderKey:
        """The order of what came now, as number `sequence` of the session."""
        self.mark = max(self.mark, at(now_ms - self._lead_ms - _STALE_MS))
        last = max(self.mark, self._asked)
        tiebreak = f"{last:020d}:{sequence:010d}"
        return OrderKey(time_ms(str(last)), tiebreak, ours=last > self._newest)

    def moment_ms(self, now_ms: int) -> int:
        """What Discord's clock shows: after all that was seen, before reactions to come."""
        last = max(self.mark, self._asked)
        moment = max(now_ms - self._lead_ms, time_ms(str(last)) + 1)
        self._asked = at(moment + 1)
        return moment
