# SPDX-License-Identifier: Apache-2.0
"""Who waits at once for a model, here or at an upstream, or for a command, and how much they have sent."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator

from aiohttp import web
from goodbot.base.connection import takes_its_time

from goodbot_connectors.kit.bridge.refused import HttpError

MOST = 64
"""Requests in all."""
EACH = 32
"""Those of one client."""
BYTES = 256 << 20
"""Of all their bodies, which lie in memory; half of it for one client."""
_SECONDS = 5.0
"""Until the next attempt."""


class Waiters:
    """Counts them. Others on the port, who rate or look, wait for none of these."""

    def __init__(self) -> None:
        self._of, self._bytes = Counter[str](), Counter[str]()

    @contextlib.contextmanager
    def place(self, request: web.Request, client: str, largest: int) -> Generator[Callable[[int], None]]:
        """A place for one request; it yields what is told how long its body was in the end.

        Who does not say it before may send `largest`. Raises HttpError.
        """
        size = request.content_length
        sizes = [largest if size is None else size]
        if self._of[client] >= EACH or self._is_full(self._bytes[client], sizes[0], BYTES // 2):
            raise HttpError(
                429, f"Too many requests of {client} wait: ask again in a moment.", retry_after=_SECONDS
            )
        if self._of.total() >= MOST or self._is_full(self._bytes.total(), sizes[0], BYTES):
            raise HttpError(503, "Too many wait: ask again in a moment.", retry_after=_SECONDS)

        def came(size: int) -> None:
            self._bytes[client] += size - sizes[0]
            sizes[0] = size

        self._of[client] += 1
        self._bytes[client] += sizes[0]
        takes_its_time(request)
        try:
            yield came
        finally:
            came(0)
            self._of[client] -= 1

    @staticmethod
    def _is_full(there: int, more: int, most: int) -> bool:
        """Whether so much more is too much; one alone is taken."""
        return there > 0 and there + more > most
