# SPDX-License-Identifier: Apache-2.0
"""Telegram's limits on what a bot sends: core.telegram.org/bots/faq, "my bot is hitting limits"."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from goodbot.base.clock import Clock

from goodbot_fakes.telegram.errors import flood


@dataclass(frozen=True, kw_only=True)
class FloodLimits:
    """How many messages and edits are taken. Telegram itself bears short bursts beyond them."""

    chat: int = 1
    """In a second in one chat."""
    group: int = 20
    """In a minute in one group."""
    overall: int = 30
    """In a second in all chats together."""


class FloodControl:
    """Counts what is sent in sliding windows; with no `limits`, anything goes."""

    def __init__(self, clock: Clock, limits: FloodLimits | None = None) -> None:
        self.limits = limits
        self._clock = clock
        self._sent: defaultdict[str, deque[float]] = defaultdict(deque)

    def admit(self, chat_id: int, *, group: bool) -> None:
        """Count one message. Raises `BotApiError` 429, and counts nothing, when it is too many."""
        if (limits := self.limits) is None:
            return
        windows = [(f"chat {chat_id}", limits.chat, 1.0), ("all", limits.overall, 1.0)]
        if group:
            windows.append((f"group {chat_id}", limits.group, 60.0))
        now = self._clock.monotonic()
        waits = [self._wait(name, count, seconds, now) for name, count, seconds in windows]
        if max(waits) > 0:
            raise flood(max(1, math.ceil(max(waits))))
        for name, _, _ in windows:
            self._sent[name].append(now)

    def _wait(self, name: str, count: int, seconds: float, now: float) -> float:
        sent = self._sent[name]
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        return sent[-count] + seconds - now if len(sent) >= count else 0.0
