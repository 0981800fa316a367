# SPDX-License-Identifier: Apache-2.0
"""Messages of an outage: Slack gives an event up after six minutes, so they are read afterwards.

Where we lately spoke, in direct messages, channels and threads, the messages since we were last
connected are read again: by Slack's clock, for ours may be set. What came in after all is known by its
id. Whoever first wrote to us during a long outage must write again: reading all conversations would take
four more scopes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.base.errors import ConnectorError, RetriableError, StoreError

from goodbot_connectors.kit.fields import Json, items, string, sub
from goodbot_connectors.slack.api import Api, RefusedError
from goodbot_connectors.slack.threads import Threads
from goodbot_connectors.slack.transport import SILENT

logger = logging.getLogger(__name__)

KEY = "connected_at"
_PERSIST = 60.0
_MARGIN = SILENT + 15.0
"""Seconds that we may have thought ourselves connected, and that what Slack's clock shows may be off."""
_LONGEST = 900.0
"""Older messages wait for no answer any more."""
_PLACES = 20
_PAGE, _PAGES = 100, 5
_PAUSE = 10.0
_TRIES = 6


class CatchUp:
    """Remembers when we were last connected, and reads what was written since."""

    def __init__(
        self,
        host: ConnectorHost,
        threads: Threads,
        submit: Callable[[Json], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        """`now` is what Slack's clock shows."""
        self._host, self._threads, self._submit, self._now = host, threads, submit, now
        self._connected_at: float | None = None
        self._persisted = -math.inf
        self._reading: asyncio.Task[None] | None = None
        self._since = 0.0

    async def load(self) -> None:
        """Take up when the last process was connected."""
        try:
            self._connected_at = float(await self._host.get(KEY) or "")
        except ValueError:
            self._connected_at = None

    async def alive(self) -> None:
        """We are connected now."""
        self._connected_at, passed = self._now(), self._host.clock.monotonic()
        if passed - self._persisted >= _PERSIST:
            self._persisted = passed
            try:
                await self._host.set(KEY, f"{self._connected_at:.0f}")
            except StoreError as error:
                logger.debug("slack: not noted that we are connected: %s", error)

    def begin(self, api: Api) -> None:
        """We are connected again: read what was missed, in the background.

        A reading that is under way starts anew: it has not yet got what an earlier outage hid.
        """
        if self._connected_at is None:
            return
        since, now = self._connected_at - _MARGIN, self._now()
        if since > now:  # that was by another clock: Slack's was set back, or an older goodbot took ours
            since = now - _LONGEST
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
            since = min(since, self._since)
        self._since = max(since, now - _LONGEST)
        self._reading = self._host.spawn(self._patiently(api, self._since), "slack catch-up")

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
        threads = self._threads.newest()
        for channel in list(dict.fromkeys(thread.channel for thread in threads))[:_PLACES]:
            await self._take(api, since, channel)
        for thread in threads[:_PLACES]:
            await self._take(api, since, thread.channel, thread.root)

    async def _take(self, api: Api, since: float, channel: str, root: str = "") -> None:
        found: list[Json] = []
        window: dict[str, Any] = {"channel": channel, "oldest": f"{since:.6f}", "limit": _PAGE}
        for _ in range(_PAGES):
            try:
                if root:
                    page = await api.call("conversations.replies", ts=root, **window)
                else:
                    page = await api.call("conversations.history", **window)
            except RefusedError as error:  # we were removed, or the thread was deleted
                logger.info("slack: a conversation cannot be read: %s", error.code)
                return
            found += items(page, "messages")
            window["cursor"] = string(sub(page, "response_metadata"), "next_cursor")
            if not window["cursor"]:
                break
        for message in sorted(found, key=lambda m: string(m, "ts")):
            if string(message, "ts") >= f"{since:.6f}":  # a thread's first message always comes
                event = {**message, "type": "message", "channel": channel}
                await self._submit({"type": "event_callback", "event": event})
