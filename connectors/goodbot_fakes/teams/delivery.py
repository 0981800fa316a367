# SPDX-License-Identifier: Apache-2.0
"""How Teams tells a bot: a request each, 15 seconds for an activity, and five for an invoke.

An activity that is answered with a failure, or too late, comes again with the same id; so does an
invoke, twice. Microsoft says so of timeouts, but not after which pauses: those are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodbot_fakes import delivery as any_platform
from goodbot_fakes.delivery import Ack, Delivery

__all__ = ["Ack", "Delivery", "Outbox", "Pace"]


@dataclass(frozen=True, kw_only=True)
class Pace(any_platform.Pace):
    """The patience of Teams, in seconds."""

    ack: float = 15.0
    retries: tuple[float, ...] = (1.0, 5.0, 30.0)
    invoke: float = 5.0
    """How long somebody who has pressed is kept waiting, each of three times."""


class Outbox(any_platform.Outbox):
    """All deliveries to one bot."""

    def patience(self, delivery: Delivery) -> any_platform.Pace:
        if delivery.kind == "invoke" and isinstance(self.pace, Pace):
            return Pace(ack=self.pace.invoke, retries=(0.0, 0.0))
        return self.pace
