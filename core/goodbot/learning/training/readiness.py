# SPDX-License-Identifier: Apache-2.0
"""What the scheduler says of the next training."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.sentences import Condition


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
