# SPDX-License-Identifier: Apache-2.0
"""To one person, in their private chat, once; where there is none, nothing is shown anywhere."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping

from goodbot.access.readers import Readers
from goodbot.api.connector import Capability, Connector
from goodbot.api.events import Button, ChannelRef, Event, Receipt, Reply
from goodbot.api.notice import Notice
from goodbot.base.clock import Clock, growing
from goodbot.base.errors import RetriableError
from goodbot.store import Store, news, settings

logger = logging.getLogger(__name__)

_TRIES, _LONGEST_PAUSE = 4, 60.0


class Courier:
    """Finds a person's private chat on a running connector and says something there."""

    def __init__(
        self, *, store: Store, clock: Clock, connectors: Mapping[str, Connector], language: str
    ) -> None:
        self.readers = Readers(language)
        self._store = store
        self._clock = clock
        self._connectors = connectors
        self._told: set[str] = set()
        self.watching: set[str] = set()
        """Who sees a run end in a message of their own (`notifications.live`), as `connector:id`."""

    async def tell(self, notice: Notice, *, kept: bool = True) -> None:
        """Say it, unless it was said before; not `kept`: nothing can be stored, so this process alone knows.

        The key is taken before the message goes out: a process that dies in between has told it
        for good. Where nobody is reached now (no terminal is open, the platform is down), the key
        is free for the next one who asks; a platform that refuses (the person never wrote to the
        bot) is not asked again.
        """
        key = notice.key
        if key in self._told or (kept and await self._store.read(lambda db: news.told(db, key))):
            self._told.add(key)
            return
        name, _, user = notice.person.partition(":")
        connector = self._connectors.get(name)
        channel = await self._private(connector, user) if connector else None
        if connector is None or channel is None:
            return
        if not kept:
            if await self._say(connector, channel, notice.text, notice.buttons):
                self._told.add(key)
            return
        if not await self._store.write(lambda db: settings.tell_once(db, key)):
            return
        said = False
        try:
            said = await self._say(connector, channel, notice.text, notice.buttons)
        finally:
            if not said:
                await self._store.write(lambda db: news.untell(db, key))

    async def ended(self, notice: Notice) -> None:
        """Say once that what was told under this key is over; unless nobody is reached now."""
        key = f"over {notice.key}"
        await self.tell(dataclasses.replace(notice, key=key))
        if await self._store.read(lambda db: news.told(db, key)):
            await self.over(notice.key)
            await self.over(key)

    async def over(self, key: str) -> None:
        """What was told is over: it is told again, should it happen again."""
        self._told.discard(key)
        await self._store.write(lambda db: news.untell(db, key))

    async def whisper(self, event: Event, receipt: Receipt) -> bool:
        """Answer a command of a shared channel in the private chat, or, without one, not at all.

        False where the platform itself shows an acknowledgement to one person alone.
        """
        connector = self._connectors.get(event.user.connector)
        if connector is None or Capability.EPHEMERAL in connector.spec.capabilities:
            return False
        if receipt.text and (channel := await self._private(connector, event.user.id)):
            await self._say(connector, channel, receipt.text)
        return True

    async def _private(self, connector: Connector, user: str) -> ChannelRef | None:
        try:
            return await connector.private(user)
        except Exception as error:
            logger.info("%s: no private chat with %s: %s", connector.spec.name, user, error)
            return None

    async def _say(
        self, connector: Connector, channel: ChannelRef, text: str, buttons: tuple[Button, ...] = ()
    ) -> bool:
        """False when it is worth trying another time."""
        for attempt in range(_TRIES):
            try:
                await connector.send(channel, Reply(text=text, buttons=buttons, silent=True))
            except RetriableError as error:
                if attempt < _TRIES - 1:
                    await self._clock.sleep(max(error.retry_after, growing(attempt, most=_LONGEST_PAUSE)))
            except Exception as error:
                logger.info("%s: %s cannot be told: %s", connector.spec.name, channel.id, error)
                return True
            else:
                return True
        return False
