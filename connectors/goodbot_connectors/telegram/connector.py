# SPDX-License-Identifier: Apache-2.0
"""The account on Telegram: its parts, and what follows from what was taken in.

No decision about content is taken here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from goodbot.api.connector import Connector, ConnectorHost, SentAnswer
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    Event,
    MessageEvent,
    MessageRef,
    PressEvent,
    Receipt,
    Reply,
)
from goodbot.base.errors import ConnectorError, RetriableError, StoreError

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.rate_limit import Throttle
from goodbot_connectors.kit.receipt_marks import ReceiptMarks
from goodbot_connectors.kit.state import StateTexts
from goodbot_connectors.telegram import SPEC, emoji, menus, render
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.config import TOKEN, WEBHOOK, TelegramSettings
from goodbot_connectors.telegram.copies import CopyReader
from goodbot_connectors.telegram.feedback import Feedback
from goodbot_connectors.telegram.intake import Cursor, Intake, Taken
from goodbot_connectors.telegram.keyboards import Keyboards
from goodbot_connectors.telegram.normalize import BotIdentity, Normalizer, TypingPrompt
from goodbot_connectors.telegram.polling import Polling
from goodbot_connectors.telegram.prompts import Prompts
from goodbot_connectors.telegram.stream import TelegramStream

if TYPE_CHECKING:
    from goodbot_connectors.telegram.webhook import Webhook

logger = logging.getLogger(__name__)

_LAST_WORDS = 3.0
_KEPT = ("data", "prompts", "offers", "parts")
"""The values of the host's that are about chats of this account."""
_MENUS = "menus"
"""The value of the host's that says which menus we have published, and for which account."""
_OUR_WEBHOOK = "webhook"
"""The value of the host's that says which webhook we have set."""


class TelegramConnector(Connector):
    """One bot account, read by long polling or by a webhook."""

    spec = SPEC
    settings: TelegramSettings

    def __init__(self, host: ConnectorHost, settings: TelegramSettings) -> None:
        super().__init__(host, settings)
        self._api: Api | None = None
        self._me = BotIdentity(id="", username="")
        self._pace = Throttle(host.clock)
        self._data = StateTexts(host, "data", 500)
        self._prompts = Prompts(host)
        self._source: asyncio.Task[None] | Webhook | None = None
        self._side: set[asyncio.Task[None]] = set()
        """What runs beside, and may say its last words before we disconnect."""

    @property
    def account(self) -> str:
        return self._me.id

    async def start(self) -> None:
        if self._api is not None:
            return
        api = Api(
            self.host.secrets.get(TOKEN), Dates(self.host.clock, self.host.told_time), self.settings.api_base
        )
        try:
            self._me = await api.open()
            cursor = await self._cursor()
            await self._data.load()
            await self._prompts.load()
            self._keyboards = Keyboards(self.host, api, self._data, self._spawn)
            await self._keyboards.load()
            self._copies = CopyReader(api, self._keyboards, group_buttons=self.settings.group_buttons)
            interval = self.settings.group_edit_interval
            marks = ReceiptMarks(
                self.host.clock,
                self._spawn,
                interval=interval,
                add=lambda spot: api.react(int(spot[0]), int(spot[1]), self.settings.mark),
                remove=lambda spot: api.react(int(spot[0]), int(spot[1]), ""),
            )
            shown = marks if self.settings.mark else None
            self._feedback = Feedback(api, self._keyboards, shown, self.send, self.host.clock)
            self._api = api
            self._source = await self._listen(api, cursor)
        except BaseException:
            self._api = None
            await api.close()
            raise
        self._spawn(self._publish_menus(api), "telegram menus")
        logger.info("telegram: connected as account %s", self._me.id)

    async def _cursor(self) -> Cursor:
        """Where we left off; another bot's end, and what we kept for it, mean nothing to this one."""
        cursor = Cursor.read(await self.host.cursor() or "", self._me.id)
        if cursor.account != self._me.id:
            logger.info("telegram: another account than before, %s", self._me.id)
            for name in _KEPT:
                await self.host.set(name, "")
        return cursor._replace(account=self._me.id)

    async def _listen(self, api: Api, cursor: Cursor) -> asyncio.Task[None] | Webhook:
        """Begin to read updates, in the one way that is configured."""
        normalizer = Normalizer(me=self._me, values=emoji.values(self.settings), kept=self._data)
        intake = Intake(self.host, normalizer, self._prompts, self._feedback.expect, cursor)

        def follow_up(taken: Taken) -> None:
            self._spawn(self._follow_up(api, taken), "telegram follow-up")

        if self.settings.mode == WEBHOOK:
            from goodbot_connectors.telegram.webhook import Webhook, secret_of

            url, secret = self.settings.webhook_url, secret_of(self.host.secrets.get(TOKEN))
            webhook = Webhook(
                intake,
                follow_up,
                url=url,
                host=self.settings.webhook_host,
                port=self.settings.webhook_port,
                secret=secret,
            )
            await webhook.start()
            try:
                await self.host.set(_OUR_WEBHOOK, url)
                await api.set_webhook(url, secret)
            except BaseException:
                await webhook.stop()
                raise
            return webhook
        await self._end_our_webhook(api)
        polling = Polling(self.host, api, intake, follow_up, self.settings.poll_timeout, cursor)
        await polling.first()
        return self.host.spawn(polling.run(), "telegram poll")

    async def _end_our_webhook(self, api: Api) -> None:
        """Take back a webhook that we had set; another program's is not ours to end."""
        ours = await self.host.get(_OUR_WEBHOOK)
        if ours and (await api.webhook()).url == ours:
            await api.set_webhook("", "")
        if ours:
            await self.host.set(_OUR_WEBHOOK, "")

    async def stop(self) -> None:
        source, self._source = self._source, None
        if isinstance(source, asyncio.Task):
            source.cancel()
            await asyncio.wait({source})
        elif source is not None:
            await source.stop()
        for task in (side := set(self._side)):
            task.cancel()
        if side:
            await asyncio.wait(side, timeout=_LAST_WORDS)
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self.host.spawn(work, name)
        self._side.add(task)
        task.add_done_callback(self._side.discard)

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        sent = await self._stream(channel).finish(reply)
        self._copies.no_answer(sent)
        return sent

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        parts = render.messages(message.channel, reply, group_buttons=self.settings.group_buttons)
        await self._connected().edit(render.edit(parts[0], int(message.id)))

    def stream(self, channel: ChannelRef, reply_to: str = "") -> TelegramStream:
        stream = self._stream(channel, reply_to)
        stream.begin()
        return stream

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> TelegramStream:
        stream = self._stream(channel, replaces=messages)
        if channel.kind is ChannelKind.PRIVATE:
            self._keyboards.take(messages)
        stream.begin()
        return stream

    async def copied(self, message: MessageRef, answers: Sequence[SentAnswer]) -> str:
        self._connected()
        return await self._copies.of(message, answers)

    async def private(self, user: str) -> ChannelRef:
        """A private chat has the person's own id; they must have written to the bot first."""
        return ChannelRef(connector=SPEC.name, account=self.account, id=user, kind=ChannelKind.PRIVATE)

    async def forget(self, user: str) -> None:
        """Their questions, their offers and which messages they got: a private chat has their id."""
        if self._api is None:
            every = [StateTexts(self.host, name) for name in _KEPT]
            for kept in every:
                await kept.load()
        else:
            every = [self._data, *self._prompts.kept, *self._keyboards.kept]
            self._keyboards.forget(user)
            self._copies.forget(user)
        self._pace.forget(user)
        for kept in every:
            await kept.forget(user)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        self._connected()
        await self._feedback.tell(event, receipt)

    def _stream(
        self, channel: ChannelRef, reply_to: str = "", replaces: Sequence[MessageRef] = ()
    ) -> TelegramStream:
        api = self._connected()
        return TelegramStream(
            host=self.host,
            api=api,
            pace=self._pace,
            settings=self.settings,
            channel=channel,
            reply_to=reply_to,
            replaces=replaces,
            shown=self._keyboards.sent if channel.kind is ChannelKind.PRIVATE else None,
            ended=self._keyboards.let_go,
        )

    def _connected(self) -> Api:
        if self._api is None:
            raise RetriableError("the Telegram connector is not started")
        return self._api

    async def _follow_up(self, api: Api, taken: Taken) -> None:
        """What people see of a delivery that is stored now, beside what the core says to it."""
        for old, new in taken.moves:
            logger.info("telegram: group %d has become supergroup %d", old, new)
            api.moved(old, new)
        for query in taken.spare:
            await self._feedback.answer(query)
        for prompt in taken.prompts:
            if self.host.may_rate(prompt.user):  # what a press says can be forged
                await self._ask(api, prompt)
        for event in taken.events:
            if event.channel.kind is not ChannelKind.PRIVATE:
                continue
            if isinstance(event, MessageEvent):
                await self._keyboards.close(event.channel.id)
            elif isinstance(event, PressEvent):
                await self._keyboards.used(event.channel.id, event.message_id)

    async def _ask(self, api: Api, prompt: TypingPrompt) -> None:
        try:
            await self._prompts.ask(api, prompt)
        except ConnectorError as error:
            logger.warning("telegram: a question was not asked: %s", error)

    async def _publish_menus(self, api: Api) -> None:
        """Unless they are those of the last time, and the last of them is still there."""
        every = list(menus.menus())
        scope, language, commands = every[-1]
        ours = f"{self.account} {menus.fingerprint()}"
        try:
            there = await api.commands(scope, language) == commands
            if there and await self.host.get(_MENUS) == ours:
                return
            for scope, language, commands in every:
                await api.set_commands(commands, scope, language)
            await self.host.set(_MENUS, ours)
        except (ConnectorError, StoreError) as error:
            logger.warning("telegram: the command menus were not published: %s", error)
