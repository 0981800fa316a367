# SPDX-License-Identifier: Apache-2.0
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

from goodbot.api.connector import ConnectorHost
from goodbot.base.errors import ConnectorError, RetriableError, StoreError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.intake import Intake
from goodbot_connectors.discord.places import Places, Spoken
from goodbot_connectors.discord.snowflake import at, identifier

logger = logging.getLogger(__name__)

_MESSAGES = "/channels/{channel_id}/messages"
_LONGEST_MS = 900_000
"""Older messages wait for no answer any more."""
_MARGIN_MS = 60_000
"""What was written before the newest that we know may have come after it."""
_PLACES, _PAGE, _PAGES = 20, 100, 5
_TRIES, _PAUSE = 6, 10.0
_LEFT = "catch-up"
"""The value of the host's that says since which id there is something to read; empty for nothing."""


class CatchUp:
    """Reads what was written while no session was there."""

    def __init__(
        self, host: ConnectorHost, api: Api, places: Places, intake: Intake, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is what Discord's clock shows."""
        self._host, self._api, self._places, self._intake = host, api, places, intake
        self._now_ms = now_ms
        self._reading: asyncio.Task[None] | None = None
        self._since = 0
        """What is newer may not be read yet; 0 when all is."""

    async def load(self) -> None:
        """Remember what an earlier process has left unread."""
        self._since = int(identifier(await self._host.get(_LEFT)) or 0)

    def begin(self, seen: int) -> None:
        """A session began anew; `seen` is the newest id that we knew, 0 for none.

        A reading that is under way starts again: it has not yet got what an earlier outage hid.
        """
        if seen:
            if self._reading is not None:
                self._reading.cancel()
                self._reading = None
            since = max(1, seen - (_MARGIN_MS << 22))
            self._since = min(since, self._since or since)
        self.go_on()

    def go_on(self) -> None:
        """Read what is left to be read, if anything is, and nobody does."""
        if not self._since or (self._reading is not None and not self._reading.done()):
            return
        now_ms = self._now_ms()
        if self._since > at(now_ms):  # that was by another clock: an older goodbot took ours
            self._since = 0
        self._since = max(self._since, at(now_ms - _LONGEST_MS))
        self._reading = self._host.spawn(self._patiently(self._since), "discord catch-up")

    async def stop(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _patiently(self, since: int) -> None:
        await self._keep(str(since))
        newest = list(self._places.spoken())[-_PLACES:]
        for _ in range(_TRIES):
            try:
                while newest:
                    await self._read(newest[-1], since)
                    newest.pop()
            except RetriableError as error:
                logger.info("discord: catching up goes on later: %s", error)
                await self._host.clock.sleep(max(_PAUSE, error.retry_after))
            else:
                await self._intake.stored()
                self._since = 0
                return await self._keep("")
        return logger.warning("discord: what was missed could not be read yet")

    async def _keep(self, since: str) -> None:
        """Until it is read and stored, a restart must know of it: it may go on with this session."""
        try:
            await self._host.set(_LEFT, since)
        except StoreError as error:
            logger.debug("discord: not noted what is to be read: %s", error)

    async def _read(self, place: Spoken, since: int) -> None:
        query: dict[str, Any] = {"after": str(since), "limit": _PAGE}
        for _ in range(_PAGES):
            await self._intake.room.wait()
            try:
                page = await self._api.list("GET", _MESSAGES, query=query, channel_id=place.id)
            except RetriableError:
                raise
            except ConnectorError as error:  # we were removed, or it was deleted
                return logger.info("discord: a channel cannot be read: %s", error)
            ids = sorted(int(identifier(one.get("id")) or 0) for one in page)
            for message in sorted(page, key=lambda one: int(identifier(one.get("id")) or 0)):
                # The gateway tells the server, this route does not; which one it is does not matter.
                server = {} if place.private else {"guild_id": place.parent or place.id}
                self._intake.read_again({**message, "channel_id": place.id, **server})
            if len(page) < _PAGE:
                return None
            query["after"] = str(ids[-1])
