# SPDX-License-Identifier: Apache-2.0
"""The account on Discord: its parts, and what follows from what was taken in.

No decision about content is taken here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from goodbot.api.connector import Connector, ConnectorHost, OpenTurn, SentAnswer
from goodbot.api.events import ChannelKind, ChannelRef, Event, MessageRef, Receipt, Reply
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.discord import SPEC, commands, emoji, members, permissions, render
from goodbot_connectors.discord.api import GONE, Api, RefusedError
from goodbot_connectors.discord.catchup import CatchUp
from goodbot_connectors.discord.config import TOKEN, DiscordSettings
from goodbot_connectors.discord.feedback import Feedback
from goodbot_connectors.discord.gateway import Gateway
from goodbot_connectors.discord.identity import BotIdentity
from goodbot_connectors.discord.intake import NOTED, Intake, Taken
from goodbot_connectors.discord.normalize import Normalizer
from goodbot_connectors.discord.offers import Offers
from goodbot_connectors.discord.places import Places, where
from goodbot_connectors.discord.presses import AnswerRef
from goodbot_connectors.discord.progress import Cursor
from goodbot_connectors.discord.reconcile import reconciler
from goodbot_connectors.discord.snowflake import Timeline, identifier
from goodbot_connectors.discord.stream import MESSAGE, DiscordStream
from goodbot_connectors.kit.copies import FirstCopies
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import string, sub
from goodbot_connectors.kit.lru import Recent
from goodbot_connectors.kit.rate_limit import Throttle
from goodbot_connectors.kit.receipt_marks import ReceiptMarks, Spot

logger = logging.getLogger(__name__)

_LAST_WORDS = 3.0
_MARK_INTERVAL = 1.0
_REACTION = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me"


class DiscordConnector(Connector):
    """One bot account, on any number of servers."""

    spec = SPEC
    settings: DiscordSettings

    def __init__(self, host: ConnectorHost, settings: DiscordSettings) -> None:
        super().__init__(host, settings)
        self._api: Api | None = None
        self._me = BotIdentity(user="", application="")
        self._pace = Throttle(host.clock)
        self._copies = FirstCopies(when=int)
        self._dates, self._timeline = Dates(host.clock, host.told_time), Timeline()
        self._places, self._offers = Places(host), Offers(host)
        self._values = emoji.values(settings)
        self._chats: Recent[str, ChannelRef] = Recent()
        now_ms = self._dates.now_ms
        self._reconciler = reconciler(
            self._values, self._connected, lambda: self.account, lambda: self._timeline.moment_ms(now_ms())
        )
        self._side: set[asyncio.Task[None]] = set()
        """What runs beside, and may say its last words before we disconnect."""

    @property
    def account(self) -> str:
        return self._me.user

    async def start(self) -> None:
        if self._api is not None:
            return
        api = Api(self.host.secrets.get(TOKEN), self.host.clock, self.settings.api_base, self._dates)
        try:
            self._me = await api.open()
            await self._places.load()
            await self._offers.load()
            self._api = api
            await self._connect(api)
        except BaseException:
            self._api = None
            await api.close()
            raise
        self._spawn(commands.publish(self.host, api, self._me.application), "discord commands")
        logger.info("discord: connected as account %s", self.account)

    async def _connect(self, api: Api) -> None:
        intents = permissions.intents(message_content=self.settings.message_content)
        cursor = Cursor.newer(await self.host.cursor(), await self.host.get(NOTED))
        mine = cursor.account == self.account
        if not cursor.resumes(self.account, intents, self.settings.gateway):
            cursor = cursor._replace(session="")
        self._timeline.mark = cursor.seen if mine else 0
        normalizer = Normalizer(
            me=self._me,
            values=self._values,
            places=self._places,
            actions=self._offers.actions,
            offers=self._offers.places,
            content=self.settings.message_content,
        )
        self._intake = Intake(
            self.host,
            api,
            normalizer,
            self._timeline,
            now_ms=self._dates.now_ms,
            cursor=self._cursor,
            swept=self._reconciler.look_at,
        )
        self._catch_up = CatchUp(self.host, api, self._places, self._intake, self._dates.now_ms)
        await self._catch_up.load()
        marks = ReceiptMarks(
            self.host.clock,
            self._spawn,
            interval=_MARK_INTERVAL,
            add=lambda spot: self._mark(api, "PUT", spot),
            remove=lambda spot: self._mark(api, "DELETE", spot),
        )
        self._feedback = Feedback(
            api,
            self._intake.interactions,
            self._offers,
            marks if self.settings.mark else None,
            send=self.send,
            private=self.private,
            clock=self.host.clock,
        )
        self._gateway = Gateway(
            self.host,
            api,
            address=self.settings.gateway,
            intents=intents,
            up=self._up,
            handle=self._intake.take,
            room=self._intake.room,
        )
        self._intake.start()
        try:
            await self._gateway.start(cursor)
            await self._intake.note()
        except BaseException:
            await self._intake.stop()
            raise

    def _cursor(self, taken: Sequence[Taken]) -> str:
        """What is committed when these dispatches are stored; some may be of a session that is gone."""
        gateway = self._gateway
        progress = gateway.progress
        numbers = [number for session, number in taken if session is progress]
        return str(
            Cursor(
                self.account,
                gateway.intents,
                progress.session,
                progress.after(numbers),
                self._timeline.mark,
                gateway.url,
            )
        )

    def _up(self, anew: bool) -> None:
        """Dispatches flow again; reactions, which are a state, are looked at in either case."""
        self._reconciler.again()
        if not anew:
            return self._catch_up.go_on()
        seen = self._timeline.mark
        self._timeline.began(self._dates.now_ms())
        self._catch_up.begin(seen)
        return self._intake.began()

    async def stop(self) -> None:
        api, self._api = self._api, None
        if api is None:
            return
        await self._gateway.stop()
        await self._catch_up.stop()
        await self._intake.stop()
        await self._intake.note()
        for task in (side := set(self._side)):
            task.cancel()
        if side:
            await asyncio.wait(side, timeout=_LAST_WORDS)
        await api.close()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self.host.spawn(work, name)
        self._side.add(task)
        task.add_done_callback(self._side.discard)

    # Out

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        return await self._stream(channel, reply.reply_to).finish(reply)

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        stream = self._stream(message.channel)
        await self._offers.prepare(reply.buttons, AnswerRef(turn=reply.turn))
        await stream.edit(message.id, stream.bodies(reply)[0], patient=True)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> DiscordStream:
        stream = self._stream(channel, reply_to)
        stream.nonce = reply_to or stream.nonce  # there is one answer to a question
        stream.begin()
        return stream

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> DiscordStream:
        stream = self._stream(channel, replaces=messages)
        stream.begin()
        return stream

    def _stream(
        self, channel: ChannelRef, reply_to: str = "", replaces: Sequence[MessageRef] = ()
    ) -> DiscordStream:
        return DiscordStream(
            api=self._connected(),
            told=self._sent,
            prepare=self._offers.prepare,
            host=self.host,
            pace=self._pace,
            interval=self.settings.edit_interval,
            channel=channel,
            reply_to=reply_to,
            replaces=replaces,
        )

    async def _sent(self, messages: Sequence[MessageRef], reply: Reply) -> None:
        if messages:
            await self._places.spoke(messages[-1].channel, answer=bool(reply.turn))

    async def copied(self, message: MessageRef, answers: Sequence[SentAnswer]) -> str:
        """By its words: Discord knows a nonce for some minutes, and a crash may last longer."""

        async def words(_: object) -> str:
            place = {"channel_id": where(message.channel), "message_id": message.id}
            try:
                found = await self._connected().call("GET", MESSAGE, **place)
            except RefusedError as error:
                if error.code == GONE:
                    return ""
                raise
            return string(found, "content") if string(sub(found, "author"), "id") == self._me.user else ""

        return await self._copies.of(message, answers, words=words, parts=render.parts)

    async def _mark(self, api: Api, method: str, spot: Spot) -> None:
        ids = dict(zip(("channel_id", "message_id"), spot, strict=True))
        face = emoji.in_path({"name": self.settings.mark})
        await api.call(method, _REACTION, emoji=face, **ids)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        self._connected()
        await self._feedback.tell(event, receipt)

    async def private(self, user: str) -> ChannelRef:
        """The direct messages with a person, who need not have written before."""
        if (known := self._chats.get(user)) is not None:
            return known
        opened = await self._connected().call("POST", "/users/@me/channels", body={"recipient_id": user})
        id_ = identifier(string(opened, "id"))
        if not id_:
            raise ConnectorError("Discord opened no direct messages")
        channel = ChannelRef(connector=SPEC.name, account=self.account, id=id_, kind=ChannelKind.PRIVATE)
        self._chats[user] = channel
        return channel

    # What can be asked

    async def reconcile(self, open_turns: Sequence[OpenTurn]) -> Sequence[Event]:
        """The differences to what we know, for a few messages each time, after every start."""
        self._connected()
        return await self._reconciler.look(open_turns)

    async def members(self, group: str) -> frozenset[str]:
        """The people with a role, named as `SERVER/ROLE` by their ids."""
        return await members.with_role(self._connected(), group)

    async def forget(self, user: str) -> None:
        """Their direct messages, and the offers that they were made."""
        self._copies.forget()
        try:
            chat = await self.private(user)
        except RefusedError as error:  # the account is gone, and nobody tells where we talked
            logger.info("discord: the direct messages of somebody are not known: %s", error.code)
        else:
            self._chats.pop(user, None)
            self._pace.forget(chat.id)
            await self._places.forget(chat.id)
        for kept in self._offers.kept:
            await kept.forget(user)

    def _connected(self) -> Api:
        if self._api is None:
            raise RetriableError("the Discord connector is not started")
        return self._api
