# SPDX-License-Identifier: Apache-2.0
"""What there is room for by HTTP, what is said where there is none, and how often. It needs no aiohttp."""

from __future__ import annotations

import json
from collections import Counter
from typing import ClassVar

HEAD_BYTES = 16 << 10
"""Of the head of a request, before anybody knows who sends it."""
GUARDS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "goodbot"}
"""Of what is said beside an application. Without a name aiohttp tells which versions run here."""
BUSY = {
    "status": "busy",
    "error": {"message": "Too many ask at once: try again in a moment.", "type": "unavailable"},
}
_BODY = json.dumps(BUSY) + "\n"
HEADERS = {"Retry-After": "1", **GUARDS}
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


class TurnedAway:
    """Connections and requests for which there was no room."""

    total = 0
    """How many there were in this process."""
    answered: ClassVar[Counter[int]] = Counter()
    """Others that a page or the API told to come again later, by status."""
