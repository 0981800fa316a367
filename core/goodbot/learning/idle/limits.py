# SPDX-License-Identifier: Apache-2.0
"""The decision: readings and limits in, one condition out that says what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goodbot.api.sentences import Condition, waits
from goodbot.config import TrainingConfig
from goodbot.config.hours import Hours


@dataclass(frozen=True, kw_only=True, slots=True)
class Readings:
    """What the machine is doing. None: cannot be read here, which objects to nothing."""

    on_battery: bool | None = None
    others_load: float | None = None
    """Share of all processor time, 0 to 1, that goes to processes which are not ours."""
    others_gpu: float | None = None
    """Share of the GPU's time, 0 to 1. Memory that an idle server merely holds does not count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """From which reading on training waits."""

    quiet_hours: Hours | None = None
    on_battery: bool = False
    """Whether it may train on battery."""
    max_load: float = 1.0
    max_gpu: float = 1.0

    @classmethod
    def of(cls, config: TrainingConfig) -> Limits:
        """What `[training]` says; it has been checked."""
        return cls(
            quiet_hours=Hours.parse(config.quiet_hours),
            on_battery=config.on_battery,
            max_load=config.max_load,
            max_gpu=config.max_gpu,
        )

    def objection(self, readings: Readings, local: datetime) -> Condition | None:
        """Why no training now, and until when; None if nothing objects.

        `local` is the machine's own clock time, which the quiet hours are meant in.
        """
        if self.quiet_hours is not None and self.quiet_hours.hold(local):
            return waits("quiet_hours", until=f"{self.quiet_hours.end:%H:%M}")
        if readings.on_battery and not self.on_battery:
            return waits("battery")
        for name, load, limit in (
            ("processors", readings.others_load, self.max_load),
            ("gpu", readings.others_gpu, self.max_gpu),
        ):
            if load is not None and load > limit:
                return waits(name, load=load, limit=limit)
        return None
