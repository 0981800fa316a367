# SPDX-License-Identifier: Apache-2.0
"""To one person, in their private chat, once; where there is none, nothing is shown anywhere."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping

import aiosqlite

from goodbot.access.readers import Readers
from goodbot.api.connector import Capability, Connector
from goodbot.api.events import Button, ChannelRef, Event, Receipt, Reply
from goodbot.api.notice import Notice
from goodbot.base.clock import Clock, growing, woken
from goodbot.base.errors import FatalConnectorError, RetriableError, boundary
from goodbot.store import Store, news, settings

logger = logging.getLogger(__name__)

_TRIES, _LONGEST_PAUSE = 4, 60.0
_FIRST_REST, _LONGEST_REST = 30.0, 900.0
"""Seconds between the tries of what happens once, and which nobody looks at again."""
_KEPT_SECONDS = 86400.0
_MOST_KEPT = 200

Still = Callable[[aiosqlite.Connection], Awaitable[Notice | None]]
"""What is to be told by now under the same key, as the store says; None: it makes no sense any more."""


@dataclasses.dataclass(slots=True)
class _Unheard:
    """What could not be told yet."""

    still: Still
    until: float
    next: float
    tries: int = 0


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
        self._unheard: dict[str, _Unheard] = {}
        """By key, the oldest first; what a process leaves here is due again when the next one starts."""
        self._wake = asyncio.Event()
        self._rests: dict[str, float] = {}
        """Platforms that want a long pause, and until when, by the clock's monotonic seconds."""
        self.watching: set[str] = set()
        """Who sees a run end in a message of their own (`notifications.live`), as `connector:id`."""

    async def insist(self, notice: Notice, still: Still) -> None:
        """Say it as `tell`; where nobody is reached again and again for a day, if it is `still` so (`loop`).

        For what is told when it happens, and by nobody who looks again.
        """
        if await self.tell(notice):
            self._unheard.pop(notice.key, None)
            return
        if before := self._unheard.get(notice.key):
            before.still = still
            return
        now = self._clock.monotonic()
        self._unheard[notice.key] = _Unheard(still, now + _KEPT_SECONDS, now + _FIRST_REST)
        if len(self._unheard) > _MOST_KEPT:
            del self._unheard[next(iter(self._unheard))]
        self._wake.set()

    async def loop(self) -> None:
        """Tell what could not be told yet; until cancelled."""
        while True:
            self._wake.clear()
            now = self._clock.monotonic()
            for key, one in list(self._unheard.items()):
                if one.next <= now:
                    with boundary(logger, "telling again"):
                        await self._again(key, one)
            if not self._unheard:
                await self._wake.wait()
                continue
            soonest = min(one.next for one in self._unheard.values())
            await woken(self._wake, self._clock, max(soonest - self._clock.monotonic(), 1.0))

    async def _again(self, key: str, one: _Unheard) -> None:
        one.tries += 1
        one.next = self._clock.monotonic() + growing(one.tries, first=_FIRST_REST, most=_LONGEST_REST)
        notice = await self._store.read(one.still) if one.next < one.until else None
        if notice is None or await self.tell(notice):
            self._unheard.pop(key, None)

    async def tell(self, notice: Notice, *, kept: bool = True) -> bool:
        """Say it, unless it was said before; not `kept`: nothing can be stored, so this process alone knows.

        Returns whether nothing is left to do about it.

        The key is taken before the message goes out: a process that dies in between has told it
        for good. Where nobody is reached now (no terminal is open, the platform is down), the key
        is free for the next one who asks (or see `insist`); a platform that refuses (the person never
        wrote to the bot) is not asked again.
        """
        key = notice.key
        if key in self._told or (kept and await self._store.read(lambda db: news.told(db, key))):
            self._told.add(key)
            return True
        name, _, user = notice.person.partition(":")
        connector = self._connectors.get(name)
        channel = await self._private(connector, user) if connector else None
        if connector is None or channel is None:
            return False
        if not kept:
            if said := await self._say(connector, channel, notice.text, notice.buttons):
                self._told.add(key)
            return said
        if not await self._store.write(lambda db: settings.tell_once(db, key)):
            return True
        said = False
        try:
            said = await self._say(connector, channel, notice.text, notice.buttons)
        finally:
            if not said:
                self._told.discard(key)  # somebody else may have looked meanwhile
                await self._store.write(lambda db: news.untell(db, key))
        return said

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
        name = connector.spec.name
        if self._clock.monotonic() < self._rests.get(name, 0.0):
            return False
        for attempt in range(_TRIES):
            try:
                await connector.send(channel, Reply(text=text, buttons=buttons, silent=True))
            except RetriableError as error:
                if error.retry_after > _LONGEST_PAUSE:  # whoever tells others has more to do than to wait
                    self._rests[name] = self._clock.monotonic() + error.retry_after
                    return False
                if attempt < _TRIES - 1:
                    await self._clock.sleep(max(error.retry_after, growing(attempt, most=_LONGEST_PAUSE)))
            except (FatalConnectorError, OSError) as error:  # whoever put it right would hear of it in vain
                logger.info("%s: %s is not told yet: %s", name, channel.id, error)
                return False
            except Exception as error:
                logger.info("%s: %s cannot be told: %s", name, channel.id, error)
                return True
            else:
                return True
        return False
