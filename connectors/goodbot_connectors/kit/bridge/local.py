# SPDX-License-Identifier: Apache-2.0
"""Base of connectors whose far side is a program of this machine that calls us."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from typing import Any

from goodbot.api.connector import Connector, ConnectorHost
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageRef,
    OrderKey,
    Outcome,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.api.texts import reworded
from goodbot.base.errors import GoodbotError, RetriableError

from goodbot_connectors.kit.bridge.clients import Clients
from goodbot_connectors.kit.fields import as_json, strings

ACCOUNT = "local"
COMMAND_SECONDS = 30.0
"""So long somebody waits for a command; what it came to follows as news."""
_NEWS = "news"
_MOST_NEWS = 20
"""Of one person; the oldest go."""
_LONGEST = 2000
_LATER = "That takes longer: `status` tells how it goes, and I will say what it came to."

_STOPPING = "goodbot is stopping: `status` tells later whether it was done."


class LocalConnector(Connector):
    """There is nothing to connect to: it runs from `start` to `stop`, and whoever has a token calls.

    A subclass has `spec` and `routes`, which it guards with `self.clients`.
    """

    def __init__(self, host: ConnectorHost, settings: Any) -> None:
        super().__init__(host, settings)
        self.clients = Clients(host.state_dir, host.clock)
        self.running = False
        self._waiting: dict[str, asyncio.Future[Receipt]] = {}
        self._late: set[str] = set()
        """Commands whose person does not wait any more."""
        self._news: dict[str, list[str]] = {}
        self._at = (0, 0)

    @property
    def account(self) -> str:
        return ACCOUNT

    async def start(self) -> None:
        if not self.running:
            kept = as_json(json.loads(await self.host.get(_NEWS) or "{}"))
            self._news = {user: list(strings(kept, user)) for user in kept}
            self.running = True

    async def stop(self) -> None:
        self.running = False
        for event_id, waiting in self._waiting.items():
            if not waiting.done():  # it is stored: asked again under another id, it was done twice
                waiting.set_result(self._in_words(event_id, _STOPPING))

    # What a subclass makes events with

    def user(self, name: str) -> UserRef:
        """A person here, by the name that the far side has for them."""
        return UserRef(connector=self.spec.name, account=self.account, id=name)

    def channel(self, name: str, thread: str = "") -> ChannelRef:
        """A person's own place; `thread` tells their conversations apart."""
        return ChannelRef(
            connector=self.spec.name, account=self.account, id=name, kind=ChannelKind.PRIVATE, thread=thread
        )

    def order(self) -> OrderKey:
        """Later than all that came before it, by our own clock: callers have none to be believed."""
        now = int(self.host.clock.now() * 1000)
        last, count = self._at
        self._at = (now, 0) if now > last else (last, count + 1)
        return OrderKey(self._at[0], f"{self._at[1]:09d}", ours=True)

    async def command(
        self,
        user: UserRef,
        channel: ChannelRef,
        name: str,
        args: str,
        *,
        event_id: str,
        reply_to: str = "",
        digest: str = "",
        seconds: float = COMMAND_SECONDS,
    ) -> Receipt:
        """Do `/rl NAME ARGS` for a person, and wait for what it came to, at most 30 s.

        `reply_to` is the message that it answers. One that takes longer is told by `news`.
        Raises StoreError, RetriableError.
        """
        if not self.running:
            raise RetriableError("goodbot is stopping: ask again in a moment")
        event = CommandEvent(
            event_id=event_id,
            order=self.order(),
            user=user,
            channel=channel,
            name=name,
            args=args,
            reply_to=reply_to,
            digest=digest,
        )
        waiting = self._waiting.get(event_id)
        if waiting is None:
            waiting = self._waiting[event_id] = asyncio.get_running_loop().create_future()
        try:
            [receipt] = await self.host.submit([event])
            done = receipt.outcome is not Outcome.ACCEPTED or (receipt.duplicate and receipt.text)
            if done and not waiting.done():  # nothing of it is under way
                return receipt
            return await asyncio.wait_for(asyncio.shield(waiting), seconds)
        except TimeoutError:
            self._late.add(event_id)
            return self._in_words(event_id, _LATER)
        finally:
            if self._waiting.get(event_id) is waiting:
                del self._waiting[event_id]
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # two may have waited: none of them need ask

    def _in_words(self, event_id: str, text: str) -> Receipt:
        said = reworded(text, self.host.language)
        return Receipt(event_id=event_id, outcome=Outcome.ACCEPTED, text=said)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Hand a command's answer to whoever waits for it; what is late becomes news."""
        if not isinstance(event, CommandEvent):
            return  # ratings are answered by what `submit` returned
        waiting = self._waiting.get(event.event_id)
        if waiting is not None and not waiting.done():
            self._late.discard(event.event_id)  # it was asked for again meanwhile
            waiting.set_result(receipt)
        elif event.event_id in self._late:
            self._late.discard(event.event_id)
            await self._tell(event.user.id, receipt.text)

    # What goodbot says unasked

    async def private(self, user: str) -> ChannelRef | None:
        return self.channel(user)

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        """Keep it for the person's next call: there is nowhere to send it to."""
        await self._tell(channel.id, reply.text)
        return (MessageRef(channel=channel, id=uuid.uuid4().hex),)

    def news(self, user: str) -> list[str]:
        """What goodbot has wanted to tell this person since the last time, oldest first."""
        told = self._news.pop(user, [])
        if told:
            self.host.spawn(self._forget_told(), "news")
        return told

    async def forget(self, user: str) -> None:
        if self._news.pop(user, None) is not None:
            await self._store()

    async def _tell(self, user: str, text: str) -> None:
        if text:
            self._news[user] = [*self._news.get(user, []), text[:_LONGEST]][-_MOST_NEWS:]
            await self._store()

    async def _forget_told(self) -> None:
        with contextlib.suppress(GoodbotError):  # it is told once more after a restart, then
            await self._store()

    async def _store(self) -> None:
        await self.host.set(_NEWS, json.dumps(self._news) if self._news else "")
