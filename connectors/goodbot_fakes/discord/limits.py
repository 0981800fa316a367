# SPDX-License-Identifier: Apache-2.0
"""Discord's limits on requests, and answers that a test asks for.

discord.com/developers/docs/topics/rate-limits
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from goodbot.base.clock import Clock

Json = dict[str, Any]
_MAJOR = ("channel_id", "guild_id", "webhook_id", "webhook_token")


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """How many requests are taken. Discord tells the figures in headers only; these are usual ones."""

    bucket: int = 5
    """Of one route with one channel, server or webhook, in `seconds`."""
    seconds: float = 5.0
    overall: int = 50
    """In a second on all routes together, those of interactions aside."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An answer in place of the handler's."""

    status: int
    body: Json | None
    headers: dict[str, str]


class Limiter:
    """Counts requests in windows; with no `limits`, anything goes."""

    def __init__(self, clock: Clock, limits: RateLimits | None) -> None:
        self.limits = limits
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        self._recent = deque[float]()

    def admit(self, name: str, params: dict[str, str], *, free: bool) -> tuple[Refusal | None, Json]:
        """Count one request: a refusal, if it is too many, and the headers of the answer."""
        limits = self.limits
        if limits is None:
            return None, {}
        now = self._clock.monotonic()
        while self._recent and self._recent[0] <= now - 1.0:
            self._recent.popleft()
        if not free and len(self._recent) >= limits.overall:
            return too_many(self._recent[0] + 1.0 - now, scope="global"), {}
        self._recent.append(now)
        major = "-".join(params[one] for one in _MAJOR if one in params)
        key = f"{name} {major}"
        start, count = self._windows.get(key, (now, 0))
        if now - start >= limits.seconds:
            start, count = now, 0
        left = start + limits.seconds - now
        headers = {
            "X-RateLimit-Limit": str(limits.bucket),
            "X-RateLimit-Remaining": str(max(0, limits.bucket - count - 1)),
            "X-RateLimit-Reset": f"{self._clock.now() + left:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(name.encode()).hexdigest()[:32],
        }
        if count >= limits.bucket:
            refusal = too_many(left, scope="user")
            return Refusal(status=429, body=refusal.body, headers=refusal.headers | headers), {}
        self._windows[key] = (start, count + 1)
        return None, headers


def too_many(seconds: float, *, scope: str = "user") -> Refusal:
    """429, as from behind Discord's proxy: without `Via` discord.py takes it for a ban."""
    seconds = max(0.001, round(seconds, 3))
    body: Json = {
        "message": "You are being rate limited.",
        "retry_after": seconds,
        "global": scope == "global",
        "code": 0,
    }
    headers = {"Retry-After": str(math.ceil(seconds)), "Via": "1.1 google", "X-RateLimit-Scope": scope}
    return Refusal(
        status=429, body=body, headers=headers | ({"X-RateLimit-Global": "true"} if scope == "global" else {})
    )


class Faults:
    """Answers that the next requests get, by `METHOD PATH` as the document writes it, or `*`."""

    def __init__(self) -> None:
        self._next: defaultdict[str, list[Refusal]] = defaultdict(list)

    def rate_limit(
        self, name: str = "*", *, seconds: float = 1.0, times: int = 1, scope: str = "user"
    ) -> None:
        """429, of one route (`user`), of something shared with others, or `global`."""
        self._next[name] += [too_many(seconds, scope=scope)] * times

    def refuse(self, name: str, status: int, code: int, message: str, *, times: int = 1) -> None:
        """A refusal such as 403, 50013, `Missing Permissions`."""
        refusal = Refusal(status=status, body={"message": message, "code": code}, headers={})
        self._next[name] += [refusal] * times

    def break_down(self, name: str = "*", *, status: int = 503, times: int = 1) -> None:
        """An answer of a proxy, which is no JSON."""
        self._next[name] += [Refusal(status=status, body=None, headers={})] * times

    def take(self, name: str) -> Refusal | None:
        """The answer for this request, used up by it."""
        for known in (name, "*"):
            if self._next[known]:
                return self._next[known].pop(0)
        return None
