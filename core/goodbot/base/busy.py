# SPDX-License-Identifier: Apache-2.0
"""What somebody is told by HTTP for whom there is no room; how many were told so at webhooks."""

from __future__ import annotations

import asyncio
import json

BUSY = {
    "status": "busy",
    "error": {"message": "Too many ask at once: try again in a moment.", "type": "unavailable"},
}
_BODY = json.dumps(BUSY) + "\n"
HEADERS = {"Retry-After": "1", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
ANSWER = "\r\n".join(
    [
        "HTTP/1.1 503 Service Unavailable",
        "Connection: close",
        "Content-Type: application/json; charset=utf-8",
        *(f"{name}: {value}" for name, value in HEADERS.items()),
        f"Content-Length: {len(_BODY)}",
        "",
        _BODY,
    ]
).encode()
"""All of it, for a connection on which nothing has been asked yet."""
REFUSED = 32
"""Connections at most that are kept open for those who were told so, until they have read that."""
READ_SECONDS = 2.0
"""Who still sends has so long to end, and to read that."""
TAKING_SECONDS = 10.0
"""An answer of which nothing was taken for so long ends its connection."""


class TurnedAway:
    """Connections that were told to come again, and may still read that."""

    total = 0
    """How many there were in this process."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def add(self, transport: asyncio.Transport) -> None:
        """Say it. Whoever it is has to take no notice of what still comes, and to call `gone` at the end."""
        TurnedAway.total += 1
        transport.write(ANSWER)
        transport.write_eof()
        if len(self._open) >= REFUSED:
            next(iter(self._open)).abort()
        self._open[transport] = asyncio.get_running_loop().call_later(READ_SECONDS, transport.abort)

    def gone(self, transport: asyncio.Transport) -> None:
        """Its connection is closed."""
        if timer := self._open.pop(transport, None):
            timer.cancel()
