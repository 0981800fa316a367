# SPDX-License-Identifier: Apache-2.0
"""The account that is this daemon's own address: what its pages send and what they are shown."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from goodbot.api.actions import is_command
from goodbot.api.connector import Connector, ConnectorHost
from goodbot.api.events import (
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    Receipt,
    Reply,
)
from goodbot.api.sentences import counted
from goodbot.base.errors import RetriableError

from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web import SPEC, normalize
from goodbot_connectors.web.api import WebApi
from goodbot_connectors.web.cache import ConversationCache
from goodbot_connectors.web.config import WebSettings
from goodbot_connectors.web.entries import FAILED, NEWS, WAITING, YOU, PageConversation, PageEntry
from goodbot_connectors.web.keeper import Keeper
from goodbot_connectors.web.live import Live
from goodbot_connectors.web.pushing import Pushing
from goodbot_connectors.web.sessions import BrowserSessions
from goodbot_connectors.web.stream import PageStream

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

logger = logging.getLogger(__name__)

NEWS_PLACE = "news"
"""The conversation in which goodbot speaks unasked."""


class WebConnector(Connector):
    """Pages in browsers. It is also the `Desk` that streams write to."""

    spec = SPEC
    settings: WebSettings

    def __init__(self, host: ConnectorHost, settings: WebSettings) -> None:
        super().__init__(host, settings)
        self._sessions = BrowserSessions(host, settings.session_days)
        self._shelf = ConversationCache(host, settings.keep_days)
        self._live = Live()
        self._pushing = Pushing(host, self._sessions, self._live)
        self._api = WebApi(host, self._sessions, self._shelf, self._live, self._pushing, self._take)
        self._keeper = Keeper(self._shelf, self._live, host.clock)
        self._running = False
        self._tasks: list[asyncio.Task[None]] = []
        self.writing: set[tuple[str, str]] = set()
        self.stopped: set[tuple[str, str]] = set()

    @property
    def account(self) -> str:
        return normalize.ACCOUNT

    def routes(self) -> Sequence[AbstractRouteDef]:
        return self._api.routes()

    async def start(self) -> None:
        if not self._running:
            await self._sessions.load()
            await self._shelf.load()
            self._running = True
            self._tasks = [
                self.host.spawn(self._live.follow(self.host), "what a training does"),
                self.host.spawn(self._keeper.loop(), "what is not stored yet"),
                self.host.spawn(self._pushing.loop(), "who is told while no page is open"),
            ]
            logger.info("web: at %s", self.host.address)

    async def stop(self) -> None:
        self._running = False
        for task in self._tasks:
            task.cancel()
        self._live.close()

    # In

    async def _take(self, user: str, json: Json, language: str = "") -> dict[str, Any]:
        """Do what a page sent; what it is answered with, after the commit.

        Raises UsageError, StoreError, RetriableError.
        """
        if not self._running:
            raise RetriableError("goodbot is stopping: send it again in a moment")
        if stopped := normalize.identifier(json.get("stop"), 64):
            self.stopped |= {(user, stopped)} & self.writing  # else it is whole already
            return {"taken": stopped}
        if await self._arranged(user, json):
            return {"taken": normalize.identifier(json.get("id"))}
        alias = await self._shelf.alias(user)
        event = normalize.event(json, user=user, alias=alias, now_ms=self.now_ms(), language=language)
        # Before its answer can come: that one is kept, too.
        revived = isinstance(event, MessageEvent) and await self._shelf.revive(user, event.channel.thread)
        [receipt] = await self.host.submit([event])
        if isinstance(event, MessageEvent):
            if not (revived and receipt.duplicate):  # else it was deleted with its conversation
                await self._asked(event, receipt)
        elif isinstance(event, RatingEvent) and receipt.outcome is Outcome.ACCEPTED:
            await self._rated(event)
        elif isinstance(event, PressEvent) and receipt.outcome is Outcome.ACCEPTED:
            await self._chosen(event)
        return {
            "taken": normalize.own_id(event.event_id),
            "outcome": receipt.outcome.value,
            "text": receipt.text,
            "counted": counted(receipt.reasons, receipt.language),
            "turn": receipt.turn,
            "offer": [asdict(button) for button in receipt.offer],
        }

    async def _arranged(self, user: str, json: Json) -> bool:
        """Rename or delete one of a person's conversations; whether that is what was asked for."""
        place = normalize.identifier(json.get("in"))
        match json:
            case {"rename": str(title)} if place:
                await self._shelf.rename(user, place, normalize.line(title))
            case {"delete": True} if place:
                entries = (await self._shelf.open(user, place)).entries
                answers = {(user, id_) for one in entries for id_ in (one.id, f"a-{one.id}")}
                self.stopped |= answers & self.writing
                await self._shelf.delete(user, place, comes_back=place == NEWS_PLACE)
            case _:
                return False
        listed = [asdict(one) for one in await self._shelf.list(user)]
        self._live.tell(user, {"conversations": listed, "deleted": place if "delete" in json else ""})
        return True

    async def _asked(self, event: MessageEvent, receipt: Receipt) -> None:
        """Put a message on its pages, unless it was a one-time code; what was refused is not kept."""
        conversation = await self.conversation(event.channel)
        if receipt.outcome is Outcome.PAIRED:
            return
        taken = receipt.outcome is Outcome.ACCEPTED
        if conversation.get(event.message_id):  # the page sends it again
            if conversation.pending:  # because it could not be stored
                await self.save(event.channel)
            return
        entry = PageEntry(
            id=event.message_id,
            by=YOU,
            text=event.text,
            at=event.order.time_ms,
            state=WAITING if taken else FAILED,
            note=receipt.text,
        )
        self.show(event.channel, conversation.ask(entry) if taken else entry)
        if taken:
            await self.save(event.channel)

    async def _rated(self, event: RatingEvent) -> None:
        """Note on the pages what its person has said of an answer of this conversation."""
        conversation = await self.conversation(event.channel)
        if any(entry.turn == event.turn for entry in conversation.entries):
            said = conversation.rate(event)
            frame = {"said": dict(said), "turn": event.turn, "in": event.channel.thread}
            self._live.tell(event.user.id, frame)
            await self.save(event.channel)

    async def _chosen(self, event: PressEvent) -> None:
        """What goodbot asked unasked is asked once: what was pressed takes the place of the buttons."""
        asked = await self._unasked(event)
        if asked is None:
            return
        labels = [button.label for button in asked.buttons if button.action == event.action]
        if labels:
            answered = replace(asked, buttons=(), note=f"You chose {labels[0]}.")
            await self._put(event.channel, answered)

    async def _unasked(self, event: PressEvent) -> PageEntry | None:
        """What goodbot said unasked, where it is that at which something was pressed."""
        if not event.message_id or not self._shelf.knows(event.user.id):  # forgotten meanwhile
            return None
        entry = (await self.conversation(event.channel)).get(event.message_id)
        return entry if entry is not None and entry.by == NEWS else None

    async def _put(self, channel: ChannelRef, entry: PageEntry) -> None:
        """Show an entry on its pages, and keep it."""
        conversation = await self.conversation(channel)
        self.show(channel, conversation.put(entry))
        await self.save(channel)

    # Out

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        if not (reply.turn or reply.reply_to):
            entry = PageEntry(
                id=uuid.uuid4().hex, by=NEWS, text=reply.text, at=self.now_ms(), buttons=reply.buttons
            )
            try:
                await self._put(channel, entry)
            except RetriableError:  # it is sent again, as another
                (await self.conversation(channel)).drop(entry.id)
                self.hide(channel, entry.id)
                raise
            return (MessageRef(channel=channel, id=entry.id),)
        return await PageStream(self, channel, fresh=uuid.uuid4().hex).finish(reply)

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        conversation = await self.conversation(message.channel)
        if (there := conversation.get(message.id)) is not None:
            entry = replace(there, text=reply.text, turn=reply.turn, buttons=reply.buttons)
            await self._put(message.channel, entry)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> PageStream:
        return PageStream(self, channel, reply_to=reply_to, fresh=uuid.uuid4().hex)

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> PageStream:
        return PageStream(self, channel, replaces=messages, fresh=uuid.uuid4().hex)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """Show it on the pages of that person, who has them for themselves."""
        if isinstance(event, MessageEvent) and receipt.outcome is not Outcome.PAIRED:
            return  # it stands at the message
        if isinstance(event, PressEvent) and not receipt.text:
            return
        if isinstance(event, PressEvent) and await self._followed(event, receipt):
            return
        words = f"{event.name} {event.args}".strip() if isinstance(event, CommandEvent) else ""
        self._live.tell(
            event.user.id,
            {
                "receipt": receipt.text,
                "counted": counted(receipt.reasons, receipt.language),
                "of": normalize.own_id(event.event_id),
                "outcome": receipt.outcome.value,
                "turn": receipt.turn or getattr(event, "turn", ""),
                "command": words,
                "in": event.channel.thread,
                "offer": [asdict(button) for button in receipt.offer],
            },
        )
        if isinstance(event, CommandEvent) or (isinstance(event, PressEvent) and is_command(event)):
            self._live.stale(event.user.id)  # `rollback all` takes every rating off, `good` adds one

    async def _followed(self, event: PressEvent, receipt: Receipt) -> bool:
        """What comes of a press at something that was said unasked is said there, too, and stays."""
        if await self._unasked(event) is None:
            return False
        entry = PageEntry(
            id=f"n-{normalize.own_id(event.event_id)}",
            by=NEWS,
            text=receipt.text,
            at=self.now_ms(),
            buttons=receipt.offer,
        )
        await self._put(event.channel, entry)
        return True

    async def private(self, user: str) -> ChannelRef | None:
        """A conversation of goodbot's own, with whoever has been here."""
        return normalize.channel_ref(user, NEWS_PLACE) if self._shelf.knows(user) else None

    async def forget(self, user: str) -> None:
        """All conversations and sessions of a person: their browsers are signed out."""
        await self._shelf.forget(user)
        await self._sessions.forget(user)
        self._live.forget(user)

    async def sign_out(self) -> None:
        await self._sessions.end_all()
        self._live.close()

    # What a stream needs

    async def conversation(self, channel: ChannelRef) -> PageConversation:
        return await self._shelf.open(channel.id, channel.thread)

    def show(self, channel: ChannelRef, entry: PageEntry) -> None:
        self._live.tell(channel.id, {"entry": asdict(entry), "in": channel.thread})

    def grow(self, channel: ChannelRef, entry: PageEntry, text: str) -> None:
        self._live.tell(channel.id, {"grow": text, "id": entry.id, "in": channel.thread})

    def hide(self, channel: ChannelRef, id_: str) -> None:
        self._live.tell(channel.id, {"hide": id_, "in": channel.thread})

    async def save(self, channel: ChannelRef) -> None:
        await self._keeper.save(channel)

    def now_ms(self) -> int:
        return int(self.host.clock.now() * 1000)
