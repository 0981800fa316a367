# SPDX-License-Identifier: Apache-2.0
"""What is said of somebody whose ratings contradict (`goodbot.learning.rating_quality.contradictions`)."""

from __future__ import annotations

from datetime import datetime

from goodbot.learning.rating_quality.contradictions import FALSE_ALARM_EVERY, Alarm


def described(alarm: Alarm) -> str:
    """Who, and the numbers, in one sentence."""
    day = f"{datetime.fromtimestamp(alarm.since):%Y-%m-%d}"  # noqa: DTZ006  the owner's own clock
    usual = f"usual: {alarm.usual:.0%} at most"
    if alarm.against == "own":
        what = f"{alarm.count} of {alarm.of} turn an older rating of their own round"
    else:
        what = f"{alarm.count} of {alarm.of} say the opposite of what others say of the same answer"
    return f"{alarm.rater} has begun to contradict: since {day}, {what} ({usual})"


def advised(alarm: Alarm) -> str:
    """To owners: what it may be, and what they can do."""
    day = f"{datetime.fromtimestamp(alarm.since):%Y-%m-%d}"  # noqa: DTZ006  the owner's own clock
    return (
        f"{described(alarm)}. It may be a change of mind, or an account in other hands; one in "
        f"{FALSE_ALARM_EVERY:,} such ratings of honest people sets this off. They count like any "
        "others, unless `[training] on_alarm` leaves them out.\n"
        f"`/rl people revoke {alarm.rater}` takes the grant away, `/rl rollback since {day}` leaves "
        "out all ratings since then."
    )
