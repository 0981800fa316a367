# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on demand: limits, refusals, a broken Slack, a dead network."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Json = dict[str, Any]


class Faults:
    """Faults of the Web API, each for the next calls of a method (or of every one: `*`)."""

    def __init__(self) -> None:
        self.network_is_down = False
        self._next: defaultdict[str, list[tuple[int, Json, dict[str, str]]]] = defaultdict(list)

    def rate_limit(self, method: str = "*", *, seconds: int = 1, times: int = 1) -> None:
        """429 with `Retry-After`."""
        answer = (429, {"ok": False, "error": "ratelimited"}, {"Retry-After": str(seconds)})
        self._next[method] += [answer] * times

    def refuse(self, method: str, error: str, *, times: int = 1, **more: Any) -> None:
        """`{"ok": false, "error": error}`, for example `fatal_error` or `account_inactive`."""
        self._next[method] += [(200, {"ok": False, "error": error, **more}, {})] * times

    def break_down(self, method: str = "*", *, status: int = 503, times: int = 1) -> None:
        """An answer that is no JSON."""
        self._next[method] += [(status, {}, {})] * times

    def take(self, method: str) -> tuple[int, Json, dict[str, str]] | None:
        """The fault for this call, used up by it."""
        for name in (method, "*"):
            if self._next[name]:
                return self._next[name].pop(0)
        return None
