# SPDX-License-Identifier: Apache-2.0
"""Stores what stands on the pages; what the disk did not take is stored as soon as it does."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict

from goodbot.api.events import ChannelRef
from goodbot.base.clock import Clock, growing
from goodbot.base.errors import RetriableError, StoreError

from goodbot_connectors.web.cache import ConversationCache
from goodbot_connectors.web.live import Live

logger = logging.getLogger(__name__)

_LONGEST_PAUSE = 60.0


class Keeper:
    """One for all conversations."""

    def __init__(self, shelf: ConversationCache, live: Live, clock: Clock) -> None:
        self._shelf, self._live, self._clock = shelf, live, clock
        self._left: dict[tuple[str, str], ChannelRef] = {}
        self._wake = asyncio.Event()

    async def save(self, channel: ChannelRef) -> None:
        """Store the conversation of a channel. Raises RetriableError, and tries again by itself (`loop`)."""
        place = (channel.id, channel.thread)
        try:
            conversation = await self._shelf.open(*place)
            if await self._shelf.save(channel.id, conversation):
                listed = await self._shelf.list(channel.id)
                self._live.tell(channel.id, {"conversations": [asdict(one) for one in listed]})
        except StoreError as error:
            self._left[place] = channel
            self._wake.set()
            raise RetriableError(str(error)) from error
        self._left.pop(place, None)

    async def loop(self) -> None:
        """Until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            tries = 0
            while self._left:
                await self._clock.sleep(growing(tries, most=_LONGEST_PAUSE))
                tries += 1
                await self._again()

    async def _again(self) -> None:
        for place, channel in list(self._left.items()):
            if not self._shelf.knows(channel.id):  # forgotten meanwhile
                del self._left[place]
                continue
            try:
                await self.save(channel)
            except RetriableError:  # so would the others
                return
            except Exception:  # of this one alone, forgotten in between
                logger.exception("a conversation was not stored")
