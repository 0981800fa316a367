# SPDX-License-Identifier: Apache-2.0
"""What the app must be told, and how often Slack tries: at once, after one minute, after five.

An event counts as delivered when its acknowledgement comes within three seconds; a later one is
too late, and the event comes again with the same `event_id`. Interactions and commands are tried
once. Where no socket is open an attempt has failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goodbot_fakes import delivery as any_platform
from goodbot_fakes.delivery import Ack, Delivery

__all__ = ["Ack", "Delivery", "Kind", "Outbox", "Pace"]

Kind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(frozen=True, kw_only=True)
class Pace(any_platform.Pace):
    """Slack's patience, in seconds."""

    ack: float = 3.0
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)


class Outbox(any_platform.Outbox):
    """All deliveries to one app, over a socket or by request."""

    def patience(self, delivery: Delivery) -> any_platform.Pace:
        if delivery.kind == "events_api":
            return self.pace
        return Pace(ack=self.pace.ack, retries=())
