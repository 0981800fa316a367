# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on demand: limits, refusals, a broken Bot Connector, a dead network."""

from __future__ import annotations

from collections import defaultdict

from goodbot_fakes.teams.errors import TeamsError

_MESSAGES = {
    412: ("PreconditionFailed", "Precondition failed"),
    502: ("BadGateway", "Bad gateway"),
    504: ("GatewayTimeout", "Gateway timeout"),
}


class Faults:
    """Faults of the Bot Connector, each for the next calls of one operation (or of any: `*`).

    Operations go by `Call.operation`: `send`, `reply`, `update`, `delete`, `create`, `member`,
    `members`; and `token` for the login.
    """

    def __init__(self) -> None:
        self.network_is_down = False
        self._next: defaultdict[str, list[TeamsError]] = defaultdict(list)

    def rate_limit(self, operation: str = "*", *, seconds: int = 1, times: int = 1) -> None:
        """429 with `Retry-After`."""
        error = TeamsError(
            429,
            "Throttled",
            "API calls quota exceeded! maximum admitted 8 per 2 Seconds.",
            Retry_After=str(seconds),
        )
        self._next[operation] += [error] * times

    def break_down(self, operation: str = "*", *, status: int = 502, times: int = 1) -> None:
        """412, 502 or 504, as Teams asks bots to try again after."""
        self._next[operation] += [TeamsError(status, *_MESSAGES[status])] * times

    def refuse(self, operation: str, status: int, code: str, message: str = "", *, times: int = 1) -> None:
        """Any other refusal, for example 403 `ContentStreamNotAllowed`."""
        self._next[operation] += [TeamsError(status, code, message or code)] * times

    def take(self, operation: str) -> TeamsError | None:
        """The fault for this call, used up by it."""
        for name in (operation, "*"):
            if self._next[name]:
                return self._next[name].pop(0)
        return None
