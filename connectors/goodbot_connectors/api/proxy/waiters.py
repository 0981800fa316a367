# SPDX-License-Identifier: Apache-2.0
"""Who waits for a model at once, here or at an upstream, and how much they have sent."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator

from aiohttp import web
from goodbot.base.answers import takes_its_time

from goodbot_connectors.kit.bridge.refused import HttpError

MOST = 64
"""Requests in all."""
EACH = 32
"""Those of one client."""
BYTES = 256 << 20
"""Of all their bodies: they lie in memory until the answer has begun."""
_SECONDS = 5.0
"""Until the next attempt."""


class Waiters:
    """Counts them. Others on the port, who rate or look, wait for none of these."""

    def __init__(self) -> None:
        self._of = Counter[str]()
        self._bytes = 0

    @contextlib.contextmanager
    def place(self, request: web.Request, client: str, largest: int) -> Generator[None]:
        """A place for one request; who does not say how long it is may send `largest`. Raises HttpError."""
        size = request.content_length
        size = largest if size is None else size
        if self._of[client] >= EACH:
            raise HttpError(
                429, f"{EACH} requests of {client} wait for the model already.", retry_after=_SECONDS
            )
        if self._of.total() >= MOST or (self._bytes and self._bytes + size > BYTES):
            raise HttpError(503, "Too many wait for the model: ask again in a moment.", retry_after=_SECONDS)
        self._of[client] += 1
        self._bytes += size
        takes_its_time(request)
        try:
            yield
        finally:
            self._of[client] -= 1
            self._bytes -= size
