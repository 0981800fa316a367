# SPDX-License-Identifier: Apache-2.0
"""What is said of somebody whose ratings contradict (`goodbot.learning.rating_quality.contradictions`)."""

from __future__ import annotations

from datetime import datetime

from goodbot.api.texts import ended, figure, joined, percent, say
from goodbot.learning.rating_quality.contradictions import FALSE_ALARM_EVERY, Alarm


def described(alarm: Alarm, language: str = "") -> str:
    """Who, and the numbers, in one clause."""
    return say(
        f"alarm_{alarm.against}",
        language,
        rater=alarm.rater,
        day=_day(alarm),
        count=alarm.count,
        of=alarm.of,
        usual=percent(alarm.usual, language),
    )


def advised(alarm: Alarm, language: str = "") -> str:
    """To owners: what it may be, and what they can do."""
    what = ended(described(alarm, language), language)
    may_be = say("alarm_may_be", language, every=figure(FALSE_ALARM_EVERY, language))
    steps = say("alarm_steps", language, rater=alarm.rater, day=_day(alarm))
    return f"{joined(language, what, may_be)}\n{steps}"


def _day(alarm: Alarm) -> str:
    return f"{datetime.fromtimestamp(alarm.since):%Y-%m-%d}"  # noqa: DTZ006  the owner's own clock
