# SPDX-License-Identifier: Apache-2.0
"""Times of the day as people write them: `"03:30"`, and windows such as `"23:00-07:00"`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time

from goodbot.base.worded import Worded, said_by


def clock_time(text: str) -> time:
    """`"3:30"` or `"03:30"`. Raises ValueError."""
    hours, colon, minutes = text.strip().partition(":")
    if not (colon and hours.isdecimal() and minutes.isdecimal()):
        raise ValueError(Worded("{text} is no time of the day", text=repr(text)))
    return time(int(hours), int(minutes))


def check_schedule(name: str, text: str) -> None:
    """Raises ValueError for what says no time to train."""
    if text not in ("auto", "manual"):
        try:
            clock_time(text)
        except ValueError:
            wrong = '{name} must be "auto", "manual" or a time such as "03:30"'
            raise ValueError(Worded(wrong, name=name)) from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hours:
    """A window of every day, `begin` in it and `end` not; over midnight when `end` comes first."""

    begin: time
    end: time

    @classmethod
    def parse(cls, text: str) -> Hours | None:
        """`"23:00-07:00"`; None for an empty text. Raises ValueError with what is wrong."""
        if not text.strip():
            return None
        begin, _, end = text.partition("-")
        try:
            hours = cls(begin=clock_time(begin), end=clock_time(end))
        except ValueError:
            wrong = Worded('must be two times such as "23:00-07:00", or "" for none')
            raise ValueError(wrong) from None
        if hours.begin == hours.end:
            raise ValueError(Worded("must begin and end at different times"))
        return hours

    def hold(self, local: datetime) -> bool:
        """Whether a moment of the local clock lies in the window."""
        now = local.time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end


def check_window(name: str, text: str) -> None:
    """Raises ValueError for what is no window of the day."""
    try:
        Hours.parse(text)
    except ValueError as error:
        raise ValueError(Worded("{name} {what}", name=name, what=said_by(error))) from error
