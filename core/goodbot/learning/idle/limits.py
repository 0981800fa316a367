"""The decision: readings and limits in, one sentence out that says what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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

    def objection(self, readings: Readings, local: datetime) -> str:
        """Why no training now, as one sentence that says until when; empty if nothing objects.

        `local` is the machine's own clock time, which the quiet hours are meant in.
        """
        if self.quiet_hours is not None and self.quiet_hours.hold(local):
            return f"these are quiet hours: training waits until {self.quiet_hours.end:%H:%M}"
        if readings.on_battery and not self.on_battery:
            return "the machine runs on its battery: training waits until it is plugged in"
        for name, load, limit in (
            ("processors", readings.others_load, self.max_load),
            ("GPU", readings.others_gpu, self.max_gpu),
        ):
            if load is not None and load > limit:
                it = "they are" if name == "processors" else "it is"
                return (
                    f"other programs use {load:.0%} of the {name}: "
                    f"training waits until {it} down to {limit:.0%}"
                )
        return ""
