# SPDX-License-Identifier: Apache-2.0
"""What happens after a commit of what came in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from goodbot.access.direct_message import Still
from goodbot.api.events import Event, Receipt
from goodbot.api.notice import Notice

Work = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUps:
    """What the other parts do then."""

    answer: Work
    put_back: Work
    """A press that waited too long: what it was to replace comes back."""
    acknowledge: Callable[[Event, Receipt], Awaitable[None]]
    rated: Callable[[], None]
    talked: Callable[[], None]
    tell: Callable[[Notice, Still], Awaitable[None]]
