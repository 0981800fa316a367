"""Messages of an outage that was too long for a RESUME: the session was gone, so they are read afterwards.

Where we lately spoke, in direct messages, channels and threads, what was written since the newest message
that we know is read again. What came in after all is known by its id. Whoever first wrote to us meanwhile
must write again: a bot cannot list its direct messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from goodbot.connector import ConnectorHost
from goodbot.errors import ConnectorError, RetriableError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.places import Places, Spoken
from goodbot_connectors.discord.snowflake import at, identifier
from goodbot_connectors.fields import Json

logger = logging.getLogger(__name__)

_LONGEST_MS = 900_000
"""Older messages wait for no answer any more."""
_MARGIN_MS = 60_000
"""What was written before the newest that we know may have come after it."""
_PLACES, _PAGE, _PAGES = 20, 100, 5
_TRIES, _PAUSE = 6, 10.0


class CatchUp:
    """Reads what was written while no session was there."""

    def __init__(
        self, host: ConnectorHost, api: Api, places: Places, take: Callable[[Json], None]
    ) -> None:
        self._host, self._api, self._places, self._take = host, api, places, take
        self._reading: asyncio.Task[None] | None = None
        self._since = 0

    def begin(self, seen: int) -> None:
        """A session began anew; `seen` is the newest id that we knew, 0 for none.

        A reading that is under way starts again: it has not yet got what an earlier outage hid.
        """
        if not seen:
            return
        since = seen - (_MARGIN_MS << 22)
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
            since = min(since, self._since)
        self._since = max(since, at(int(self._host.clock.now() * 1000) - _LONGEST_MS), 1)
        self._reading = self._host.spawn(self._patiently(self._since), "discord catch-up")

    async def stop(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _patiently(self, since: int) -> None:
        newest = list(self._places.spoken())[-_PLACES:]
        for _ in range(_TRIES):
            try:
                while newest:
                    await self._read(newest[-1], since)
                    newest.pop()
                return
            except RetriableError as error:
                logger.info("discord: catching up goes on later: %s", error)
                await self._host.clock.sleep(max(_PAUSE, error.retry_after))
            except ConnectorError as error:  # we were removed, or it was deleted
                logger.info("discord: a channel cannot be read: %s", error)
                newest.pop()
        logger.warning("discord: what was missed could not be read")

    async def _read(self, place: Spoken, since: int) -> None:
        query: dict[str, Any] = {"after": str(since), "limit": _PAGE}
        for _ in range(_PAGES):
            page = await self._api.list(
                "GET", "/channels/{channel_id}/messages", query=query, channel_id=place.id
            )
            ids = sorted(int(identifier(one.get("id")) or 0) for one in page)
            for message in sorted(page, key=lambda one: int(identifier(one.get("id")) or 0)):
                # The gateway tells the server, this route does not; which one it is does not matter.
                server = {} if place.private else {"guild_id": place.parent or place.id}
                self._take({**message, "channel_id": place.id, **server})
            if len(page) < _PAGE:
                return
            query["after"] = str(ids[-1])
