"""Our own reaction as a nod: "counted". For groups, where nothing can be said to one person alone."""

from __future__ import annotations

import logging

from goodbot.clock import Clock
from goodbot.errors import ConnectorError, RetriableError

from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.pace import Pace, Spawn

logger = logging.getLogger(__name__)

SECONDS = 10.0

_Spot = tuple[int, int]


class Marks:
    """Puts a mark on a message and takes it away again; left out where a chat has had too many."""

    def __init__(self, clock: Clock, api: Api, emoji: str, interval: float, spawn: Spawn) -> None:
        self._clock, self._api, self._spawn = clock, api, spawn
        self._emoji, self._interval = emoji, interval
        self._pace = Pace(clock)
        self._until: dict[_Spot, float] = {}

    async def put(self, chat_id: int, message_id: int) -> None:
        """Mark a message for ten seconds, counted from the last time."""
        spot = (chat_id, message_id)
        fresh = spot not in self._until
        if not self._emoji or (fresh and not self._pace.due(str(chat_id))):
            return
        self._until[spot] = self._clock.monotonic() + SECONDS
        if not fresh:
            return
        # Two calls a mark: it and its end.
        self._pace.hold(str(chat_id), 2 * self._interval)
        try:
            await self._api.react(chat_id, message_id, self._emoji)
        except ConnectorError as error:
            del self._until[spot]
            if isinstance(error, RetriableError):
                self._pace.hold(str(chat_id), error.retry_after)
            logger.debug("telegram: no mark: %s", error)
            return
        self._spawn(self._end(spot), "telegram mark")

    async def _end(self, spot: _Spot) -> None:
        try:
            while (left := self._until.get(spot, 0.0) - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
        finally:  # also at a stop: nobody would come back for it
            self._until.pop(spot, None)
            await self._remove(spot)

    async def _remove(self, spot: _Spot) -> None:
        for _ in range(2):
            try:
                return await self._api.react(*spot, "")
            except RetriableError as error:
                await self._clock.sleep(error.retry_after)
            except ConnectorError as error:
                return logger.debug("telegram: a mark stays: %s", error)
