# SPDX-License-Identifier: Apache-2.0
"""When updates happened: Telegram numbers them in their order, and dates only some.

A press on a button has no time, and calls of a webhook come side by side, each again where it has failed.
So a press may come after what was done after it, an undo say. Its number says where it belongs: behind the
time of the update with the next lower number, before that of the next higher one. What has a date is fitted
in the same way, so that the order by time is that by number.
"""

from __future__ import annotations

import bisect
import copy

_MOST = 1000
_ANEW_SECONDS = 86400.0
"""After a week without an update Telegram may go on with any number: what is so old says nothing."""


class UpdateTimes:
    """The times of the last updates that are stored, in milliseconds since the epoch."""

    def __init__(self, since_ms: int) -> None:
        """`since_ms`: of the last one before these, whose number is not known."""
        self.latest_ms = since_ms
        self._before_ms = since_ms
        self._numbers: list[int] = []
        self._times: list[int] = []
        self._heard = 0.0

    def copy(self) -> UpdateTimes:
        """The same, to go on with until what comes is stored."""
        return copy.deepcopy(self)

    def since(self, update_id: int, now: float) -> int:
        """The time of the last one before it. `now` is in seconds, by any clock that goes on."""
        self._begin_anew(now)
        at = bisect.bisect_left(self._numbers, update_id)
        return self._times[at - 1] if at else self._before_ms

    def fitted(self, update_id: int, time_ms: int) -> int:
        """`time_ms` within what its neighbours by number leave to it."""
        at = bisect.bisect_left(self._numbers, update_id)
        for time in self._times[max(at - 1, 0) : at]:
            time_ms = max(time_ms, time)
        for time in self._times[at : at + 1]:
            time_ms = min(time_ms, time)
        return time_ms

    def note(self, update_id: int, time_ms: int, now: float) -> None:
        """One is stored."""
        self._begin_anew(now)
        self._heard = now
        self.latest_ms = max(self.latest_ms, time_ms)
        at = bisect.bisect_left(self._numbers, update_id)
        if self._numbers[at : at + 1] == [update_id]:
            return
        self._numbers.insert(at, update_id)
        self._times.insert(at, time_ms)
        if len(self._numbers) > _MOST:
            self._forget(1)

    def _begin_anew(self, now: float) -> None:
        if now - self._heard > _ANEW_SECONDS:
            self._forget(len(self._numbers))

    def _forget(self, count: int) -> None:
        self._before_ms = max([self._before_ms, *self._times[:count]])
        del self._numbers[:count], self._times[:count]
