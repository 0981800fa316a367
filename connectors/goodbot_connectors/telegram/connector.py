"""The account on Telegram: polls, submits, sends. No decision about content is taken here.

The poll loop is our own. python-telegram-bot's `Updater` asks for the next updates, and thereby
confirms the last ones to Telegram, as soon as they are in its memory; here the offset moves only
after `host.submit` has committed, so that a crash in between gets the same updates again.
"""

from __future__ import annotations

import asyncio
import logging
import random

from goodbot.connector import Connector, ConnectorHost
from goodbot.errors import ConnectorError, RetriableError, StoreError
from goodbot.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Receipt,
    Reply,
)

from goodbot_connectors.telegram import SPEC, render
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.config import TOKEN, TelegramSettings
from goodbot_connectors.telegram.normalize import (
    Identity,
    Normalizer,
    batch,
    emoji_values,
    query_ids,
)
from goodbot_connectors.telegram.pace import Pace
from goodbot_connectors.telegram.stream import TelegramStream

logger = logging.getLogger(__name__)

_BACKOFF_MOST = 60.0
_OPEN_QUERIES = 1000
_QUIET = 5 * 86400.0
"""After a week without updates Telegram may choose the next update id anew, below our offset
(core.telegram.org/bots/api#update). It keeps updates for a day, so that asking without an offset
after some quiet days repeats nothing."""


class TelegramConnector(Connector):
    """One bot account, read by long polling.

    The cursor is `OFFSET TIME`: the next update to ask for, and the time (ms) of the last event,
    which dates button presses (see `Normalizer.events`).
    """

    spec = SPEC
    settings: TelegramSettings

    def __init__(self, host: ConnectorHost, settings: TelegramSettings) -> None:
        super().__init__(host, settings)
        self._api: Api | None = None
        self._me = Identity(id="", username="")
        self._normalizer = Normalizer(me=self._me, values={})
        self._pace = Pace(host.clock)
        self._poll: asyncio.Task[None] | None = None
        self._offset: int | None = None
        self._since_ms = 0
        self._last_update = 0.0
        self._queries: dict[str, str] = {}

    @property
    def account(self) -> str:
        return self._me.id

    async def start(self) -> None:
        if self._poll is not None:
            return
        api = Api(self.host.secrets.get(TOKEN), self.settings.api_base)
        try:
            self._me = await api.open()
            await self._publish_commands(api)
            self._load(await self.host.cursor())
            # Says which updates we want before anybody can react to what we send; they stay
            # unconfirmed, the loop gets them again.
            await api.updates(self._offset, 0)
        except BaseException:
            await api.close()
            raise
        self._api = api
        self._normalizer = Normalizer(me=self._me, values=emoji_values(self.settings))
        self._poll = self.host.spawn(self._run(api), "telegram poll")
        logger.info("telegram: connected as account %s", self._me.id)

    async def stop(self) -> None:
        poll, self._poll = self._poll, None
        if poll is not None:
            poll.cancel()
            await asyncio.wait({poll})
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        return await self._stream(channel).finish(reply)

    async def edit(self, message: MessageRef, reply: Reply) -> None:
        parts = render.messages(message.channel, reply, group_buttons=self.settings.group_buttons)
        await self._connected().edit(render.edit(parts[0], int(message.id)))

    def stream(self, channel: ChannelRef, reply_to: str = "") -> TelegramStream:
        stream = self._stream(channel, reply_to)
        stream.begin()
        return stream

    async def private(self, user: str) -> ChannelRef:
        """A private chat has the person's own id; they must have written to the bot first."""
        return ChannelRef(
            connector=SPEC.name, account=self.account, id=user, kind=ChannelKind.PRIVATE
        )

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        """A press gets a toast, a command or a message an answer; a reaction gets nothing.

        Telegram has no private message in a group (before Bot API 10.3's ephemeral ones), so
        what the core says there should be fit for all; reactions would only add noise.
        """
        if query := self._queries.pop(event.event_id, ""):
            await self._connected().answer(query, render.toast(receipt.text))
        elif receipt.text and isinstance(event, (CommandEvent, MessageEvent)):
            reply = Reply(text=receipt.text, reply_to=event.message_id, silent=True)
            await self.send(event.channel, reply)

    def _stream(self, channel: ChannelRef, reply_to: str = "") -> TelegramStream:
        return TelegramStream(
            host=self.host,
            api=self._connected(),
            pace=self._pace,
            settings=self.settings,
            channel=channel,
            reply_to=reply_to,
        )

    def _connected(self) -> Api:
        if self._api is None:
            raise RetriableError("the Telegram connector is not started")
        return self._api

    def _load(self, cursor: str | None) -> None:
        offset, _, since = (cursor or "").partition(" ")
        self._offset = int(offset) if offset else None
        self._since_ms = int(since or 0)
        self._last_update = self._since_ms / 1000

    async def _publish_commands(self, api: Api) -> None:
        try:
            await api.publish_commands()
        except RetriableError as error:
            logger.warning("telegram: the command list was not published: %s", error)

    async def _run(self, api: Api) -> None:
        failures = 0
        while not self.host.stopping.is_set():
            try:
                await self._take_in(api)
                failures = 0
            except (RetriableError, StoreError) as error:
                # Nothing was confirmed: the next poll gets the same updates again.
                pause = min(_BACKOFF_MOST, 2.0**failures) * random.uniform(0.5, 1)  # noqa: S311
                if isinstance(error, RetriableError):
                    pause = max(pause, error.retry_after)
                failures += 1
                logger.warning("telegram: %s; trying again in %.1f s", error, pause)
                await self.host.clock.sleep(pause)

    async def _take_in(self, api: Api) -> None:
        """One poll. The offset, whose use confirms the last one, moves after the commit."""
        quiet = self.host.clock.now() - self._last_update > _QUIET
        updates = await api.updates(None if quiet else self._offset, self.settings.poll_timeout)
        events, offset = batch(self._normalizer, updates, self._since_ms)
        if offset is None:
            return
        queries = query_ids(updates)
        known = {event.event_id for event in events}
        self._remember({name: query for name, query in queries.items() if name in known})
        if events:
            since_ms = max(self._since_ms, *(event.order.time_ms for event in events))
            await self.host.submit(events, cursor=f"{offset} {since_ms}")
            self._since_ms = since_ms
        self._offset = offset
        self._last_update = self.host.clock.now()
        for name, query in queries.items():
            if name not in known:
                self.host.spawn(self._end_spinner(api, query), "telegram answer")

    def _remember(self, queries: dict[str, str]) -> None:
        self._queries |= queries
        for name in list(self._queries)[:-_OPEN_QUERIES]:
            del self._queries[name]

    async def _end_spinner(self, api: Api, query: str) -> None:
        try:
            await api.answer(query, "")
        except ConnectorError as error:
            logger.debug("telegram: a press was not answered: %s", error)
