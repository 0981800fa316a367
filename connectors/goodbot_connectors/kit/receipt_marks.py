# SPDX-License-Identifier: Apache-2.0
"""Our own reaction as a nod: "counted". For places where nothing can be said to one person alone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.kit.rate_limit import Spawn, Throttle

logger = logging.getLogger(__name__)

SECONDS = 10.0

Spot = tuple[str, str]
"""Chat and message."""
React = Callable[[Spot], Awaitable[None]]


class ReceiptMarks:
    """Puts a mark on a message and takes it away again; left out where a chat has had too many."""

    def __init__(self, clock: Clock, spawn: Spawn, *, add: React, remove: React, interval: float) -> None:
        """`interval` is what the platform wants between two changes in a chat, in seconds."""
        self._clock, self._spawn, self._interval = clock, spawn, interval
        self._add, self._take_away = add, remove
        self._pace = Throttle(clock)
        self._until: dict[Spot, float] = {}

    async def put(self, spot: Spot) -> None:
        """Mark a message for ten seconds, counted from the last time."""
        chat, fresh = spot[0], spot not in self._until
        if fresh and not self._pace.due(chat):
            return
        self._until[spot] = self._clock.monotonic() + SECONDS
        if not fresh:
            return
        # Two calls a mark: it and its end.
        self._pace.hold(chat, 2 * self._interval)
        try:
            await self._add(spot)
        except ConnectorError as error:
            del self._until[spot]
            if isinstance(error, RetriableError):
                self._pace.hold(chat, error.retry_after)
            logger.debug("no mark: %s", error)
            return
        self._spawn(self._end(spot), "mark")

    async def _end(self, spot: Spot) -> None:
        try:
            while (left := self._until.get(spot, 0.0) - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
        finally:  # also at a stop: nobody would come back for it
            self._until.pop(spot, None)
            await self._remove(spot)

    async def _remove(self, spot: Spot) -> None:
        for _ in range(2):
            try:
                return await self._take_away(spot)
            except RetriableError as error:
                await self._clock.sleep(error.retry_after)
            except ConnectorError as error:
                return logger.debug("a mark stays: %s", error)
