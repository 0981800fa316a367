# SPDX-License-Identifier: Apache-2.0
"""What the scheduler says of the next training."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goodbot.api.sentences import Condition, waits
from goodbot.base.clock import ago
from goodbot.config.hours import clock_time


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether a run is due, and the one condition that decides it."""

    condition: Condition
    enough: int = 1
    """The least that a run which is due may claim: ties count among what is available, but train nothing."""
    urgent: bool = False
    """A tainted adapter answers until this run has replaced it."""
    interrupted: bool = False
    """A run waits to go on."""
    counted: int = 0
    """Ratings that were counted to tell: what it costs grows with them."""

    @property
    def due(self) -> bool:
        return self.condition.met


def not_yet(schedule: str, now: float, started: float | None) -> Condition | None:
    """Why the configured schedule does not allow a run now; None if it does.

    One run a day: the first look after the time of day at which no run has begun since. `started`: when
    the last one began.
    """
    if schedule == "auto":
        return None
    if schedule == "manual":
        return waits("manual")
    local = datetime.fromtimestamp(now)  # noqa: DTZ006  the owner's own clock
    at = datetime.combine(local, clock_time(schedule))
    if local < at or (started is not None and ago(started, now) <= now - at.timestamp()):
        return waits("schedule", time=schedule)
    return None
