"""Messages of an outage: Slack gives an event up after six minutes, so they are read afterwards.

Where we lately spoke, in direct messages, channels and threads, the messages since we were last
connected are read again. What came in after all is known by its id. Whoever first wrote to us during
a long outage must write again: reading all conversations would take four more scopes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from goodbot.connector import ConnectorHost
from goodbot.errors import ConnectorError, RetriableError, StoreError

from goodbot_connectors.fields import Json, items, string
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.threads import Threads

logger = logging.getLogger(__name__)

KEY = "connected_at"
_PERSIST = 60.0
_MARGIN = 15.0
"""Seconds that our clock may be ahead of Slack's."""
_LONGEST = 900.0
"""Older messages wait for no answer any more."""
_PLACES = 20
_PAGE = 100
_PAUSE = 10.0
_TRIES = 6


class CatchUp:
    """Remembers when we were last connected, and reads what was written since."""

    def __init__(
        self, host: ConnectorHost, threads: Threads, submit: Callable[[Json], Awaitable[None]]
    ) -> None:
        self._host, self._threads, self._submit = host, threads, submit
        self._connected_at: float | None = None
        self._persisted = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Take up when the last process was connected."""
        try:
            self._connected_at = float(await self._host.get(KEY) or "")
        except ValueError:
            self._connected_at = None

    async def alive(self) -> None:
        """We are connected now."""
        now = self._connected_at = self._host.clock.now()
        if now - self._persisted >= _PERSIST:
            self._persisted = now
            try:
                await self._host.set(KEY, f"{now:.0f}")
            except StoreError as error:
                logger.debug("slack: not noted that we are connected: %s", error)

    def begin(self, api: Api) -> None:
        """We are connected again: read what was missed, in the background."""
        if self._connected_at is not None:
            since = max(self._connected_at - _MARGIN, self._host.clock.now() - _LONGEST)
            self._reading = self._host.spawn(self._patiently(api, since), "slack catch-up")

    async def stop(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _patiently(self, api: Api, since: float) -> None:
        for _ in range(_TRIES):
            try:
                return await self._read(api, since)
            except (RetriableError, StoreError) as error:
                logger.info("slack: catching up goes on later: %s", error)
                await self._host.clock.sleep(_PAUSE)
            except ConnectorError as error:
                logger.warning("slack: what was missed cannot be read: %s", error)
                return None
        logger.warning("slack: what was missed could not be read")
        return None

    async def _read(self, api: Api, since: float) -> None:
        window: dict[str, Any] = {"oldest": f"{since:.6f}", "limit": _PAGE}
        threads = self._threads.newest()
        for place in list(dict.fromkeys(thread.channel for thread in threads))[:_PLACES]:
            page = api.call("conversations.history", channel=place, **window)
            await self._take(place, since, page)
        for thread in threads[:_PLACES]:
            page = api.call(
                "conversations.replies", channel=thread.channel, ts=thread.root, **window
            )
            await self._take(thread.channel, since, page)

    async def _take(self, channel: str, since: float, asked: Awaitable[Json]) -> None:
        try:
            page = await asked
        except RefusedError as error:  # we were removed, or the thread was deleted
            logger.info("slack: a conversation cannot be read: %s", error.code)
            return
        for message in sorted(items(page, "messages"), key=lambda m: string(m, "ts")):
            if string(message, "ts") >= f"{since:.6f}":  # a thread's first message always comes
                event = {**message, "type": "message", "channel": channel}
                await self._submit({"type": "event_callback", "event": event})
