# SPDX-License-Identifier: Apache-2.0
"""Dispatches on their way in: normalized at once, submitted together, and counted once they are stored.

Messages and reactions wait in a queue, in their order; everything that is there goes in one commit. While
the disk fails they stay there, and Discord is not told that we have them. With too many of them the gateway
hangs up: Discord tells the rest when the session is resumed, or it is read again (`catchup`). Interactions
have three seconds, and go beside it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Event
from goodbot.base.clock import growing, woken
from goodbot.base.errors import RetriableError, StoreError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.interactions import Interactions
from goodbot_connectors.discord.normalize import Normalizer, Stamp
from goodbot_connectors.discord.places import Places
from goodbot_connectors.discord.progress import Progress
from goodbot_connectors.discord.room import HeldDispatches
from goodbot_connectors.discord.snowflake import Timeline, identifier
from goodbot_connectors.kit.fields import Json, as_json

logger = logging.getLogger(__name__)

_INTERACTION = "INTERACTION_CREATE"
_WITH_ID = ("MESSAGE_CREATE", _INTERACTION)
_SWEPT = ("MESSAGE_REACTION_REMOVE_ALL", "MESSAGE_REACTION_REMOVE_EMOJI")
"""Reactions that were taken away, without whose they were."""
_AT_ONCE = 200
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
NOTED = "session"
"""The value of the host's that says how far we are, where nothing was there to commit it with."""
_NOTE = 60.0
"""Seconds between two notes of how far we are, when nothing else is stored."""


Taken = tuple[Progress, int]
"""A dispatch: its session's progress, and its number in that session."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """A dispatch that waits to be stored."""

    name: str
    json: Json
    stamp: Stamp
    events: tuple[Event, ...]
    progress: Progress
    number: int
    """Its own in the session; 0 for one that was read again."""
    placed: bool
    """Whether it was known what its channel is."""


class Intake:
    """Takes the dispatches of one account."""

    def __init__(
        self,
        host: ConnectorHost,
        api: Api,
        normalizer: Normalizer,
        timeline: Timeline,
        *,
        now_ms: Callable[[], int],
        cursor: Callable[[Sequence[Taken]], str],
        swept: Callable[[str], None],
    ) -> None:
        """`now_ms` is what Discord's clock shows, `cursor` what to commit when these are stored.

        `swept` is told a message's id.
        """
        self._host, self._api, self._normalizer = host, api, normalizer
        self._places: Places = normalizer.places
        self._timeline, self._cursor, self._swept = timeline, cursor, swept
        self._now_ms = now_ms
        self.interactions = Interactions(host, api, normalizer.me, normalizer)
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self.room = HeldDispatches()
        self._noted = ""
        self._new_session = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to store."""
        for work, name in ((self._run(), "discord intake"), (self._note(), "discord notes")):
            self._tasks.add(self._host.spawn(work, name))

    async def stop(self) -> None:
        """Give up what is not stored yet: it comes again."""
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._tasks.clear()

    def take(self, name: str, data: object, progress: Progress) -> None:
        """One dispatch, as it comes."""
        json = as_json(data)
        if name in _WITH_ID and (id_ := identifier(json.get("id"))):
            self._timeline.seen(id_, self._now_ms())
        self._places.note(name, json)
        if name in _SWEPT:
            self._swept(identifier(json.get("message_id")))
        item = self._item(name, json, progress)
        if name == _INTERACTION:
            if number := progress.begin():
                self._beside(replace(item, number=number))
        elif item.events and (number := progress.begin()):
            self._put(replace(item, number=number))

    def read_again(self, message: Json) -> None:
        """A message that was read after an outage, as the gateway would have told it."""
        item = self._item("MESSAGE_CREATE", message, Progress())
        if item.events:
            self._put(item)

    def _put(self, item: _Item) -> None:
        self.room.take()
        self._queue.put_nowait(item)

    async def stored(self) -> None:
        """Returns once nothing waits any more."""
        await self._queue.join()

    def _item(self, name: str, json: Json, progress: Progress) -> _Item:
        session = hashlib.sha256(progress.session.encode()).hexdigest()[:12]
        now = self._timeline.now(progress.current, self._now_ms())
        stamp = Stamp(f"{session}:{progress.current}", now)
        events = self._normalizer.events(name, json, stamp)
        channel = identifier(json.get("channel_id"))
        placed = not json.get("guild_id") or self._places.parent(channel) is not None
        return _Item(
            name=name, json=json, stamp=stamp, events=events, progress=progress, number=0, placed=placed
        )

    def _beside(self, item: _Item) -> None:
        self.room.take()
        task = self._host.spawn(self._interact(item), "discord interaction")
        task.add_done_callback(lambda _: self.room.leave())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _interact(self, item: _Item) -> None:
        try:
            await self.interactions.take(
                item.json, item.events, lambda: self._cursor([(item.progress, item.number)])
            )
        except Exception:
            logger.exception("discord: an interaction could not be taken in")
        item.progress.done(item.number)

    async def _run(self) -> None:
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < _AT_ONCE:
                batch.append(self._queue.get_nowait())
            batch = [await self._placed(item) for item in batch]
            try:
                await self._submit(batch)
            except Exception:
                logger.exception("discord: something could not be taken in")
                await self._one_by_one(batch)
            for _ in batch:
                self._queue.task_done()
                self.room.leave()

    async def _placed(self, item: _Item) -> _Item:
        """With its channel known: a message in a thread does not say of which channel."""
        if item.placed:
            return item
        channel, tries = identifier(item.json.get("channel_id")), 0
        while self._places.parent(channel) is None:
            try:
                await self._places.find(self._api, channel)
            except RetriableError as error:
                logger.info("discord: a channel is looked up later: %s", error)
                pause = growing(tries, first=_PAUSE, most=_LONGEST_PAUSE)
                await self._host.clock.sleep(max(pause, error.retry_after))
                tries += 1
        events = self._normalizer.events(item.name, item.json, item.stamp)
        return replace(item, events=events)

    async def _submit(self, batch: Sequence[_Item]) -> None:
        """Store, however long it takes."""
        events = [event for item in batch for event in item.events]
        for tries in itertools.count():
            try:
                self._noted = self._cursor([(item.progress, item.number) for item in batch])
                await self._host.submit(events, cursor=self._noted)
                break
            except StoreError as error:
                logger.error("discord: not stored yet, it is tried again: %s", error)
                await self._host.clock.sleep(growing(tries, first=_PAUSE, most=_LONGEST_PAUSE))
        for item in batch:
            item.progress.done(item.number)

    async def _one_by_one(self, batch: Sequence[_Item]) -> None:
        """One that nothing can be done with must not take the others along."""
        for item in batch:
            try:
                await self._submit([item])
            except Exception:
                logger.exception("discord: something is left out")
                item.progress.done(item.number)

    async def _note(self) -> None:
        """Now and then, how far we are: else a restart would be told the chatter of hours again."""
        while True:
            await woken(self._new_session, self._host.clock, _NOTE)
            self._new_session.clear()
            await self.note()

    async def note(self) -> None:
        """Keep how far we are; without a note of the session a restart could not go on with it."""
        cursor = self._cursor(())
        if cursor == self._noted:
            return
        try:
            await self._host.set(NOTED, cursor)
            self._noted = cursor
        except StoreError as error:
            logger.debug("discord: not noted how far we are: %s", error)

    def began(self) -> None:
        """A session has begun."""
        self._new_session.set()
