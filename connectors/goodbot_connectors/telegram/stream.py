"""One streamed answer: "typing", then a message that grows by edits, then its final shape."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from goodbot.connector import ConnectorHost, ReplyStream
from goodbot.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.events import ChannelKind, ChannelRef, MessageRef, Reply

from goodbot_connectors.telegram import render
from goodbot_connectors.telegram.api import Api, FloodError
from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.pace import Pace

logger = logging.getLogger(__name__)

_TYPING_EVERY = 4.5
_TYPING_MOST = 600.0
_LONGEST_PAUSE = 60.0
_TRIES = 4


class TelegramStream(ReplyStream):
    """Keeps a chat's messages equal to what `render` makes of the answer so far."""

    def __init__(
        self,
        *,
        host: ConnectorHost,
        api: Api,
        pace: Pace,
        settings: TelegramSettings,
        channel: ChannelRef,
        reply_to: str = "",
    ) -> None:
        self._host, self._api, self._pace, self._settings = host, api, pace, settings
        self._channel, self._reply_to = channel, reply_to
        self._text = ""
        self._shown: list[tuple[int, dict[str, Any]]] = []
        self._typing: asyncio.Task[None] | None = None
        private = channel.kind is ChannelKind.PRIVATE
        self._interval = settings.edit_interval if private else settings.group_edit_interval

    def begin(self) -> None:
        """Say that somebody is typing until there is something to read."""
        self._typing = self._host.spawn(self._type(), "telegram typing")

    async def append(self, text: str) -> None:
        self._text += text
        if not self._text.strip() or not self._pace.due(self._channel.id):
            return
        try:
            await self._show(Reply(text=self._text, reply_to=self._reply_to))
        except FloodError as error:
            self._pace.hold(self._channel.id, error.retry_after)
        except FatalConnectorError:
            raise
        except ConnectorError as error:
            # What could not be shown now is part of what `finish` shows.
            logger.debug("telegram: an edit was left out: %s", error)

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        self._end_typing()
        await self._show(reply, patient=True)
        return tuple(
            MessageRef(channel=self._channel, id=str(message_id)) for message_id, _ in self._shown
        )

    async def cancel(self, reason: str) -> None:
        self._end_typing()
        await self._show(Reply(text=reason, reply_to=self._reply_to), patient=True)

    async def _show(self, reply: Reply, *, patient: bool = False) -> None:
        buttons = self._settings.group_buttons
        wanted = render.messages(self._channel, reply, group_buttons=buttons)
        call = self._patiently if patient else _at_once
        for n, message in enumerate(wanted):
            if n >= len(self._shown):
                message_id = await call(lambda m=message: self._api.send(m))
                self._shown.append((message_id, message))
                self._end_typing()
            elif self._shown[n][1] != message:
                message_id = self._shown[n][0]
                edit = render.edit(message, message_id)
                await call(lambda m=edit: self._api.edit(m))
                self._shown[n] = (message_id, message)
            else:
                continue
            self._pace.hold(self._channel.id, self._interval)
        while len(self._shown) > len(wanted):
            message_id, _ = self._shown[-1]
            await call(lambda m=message_id: self._api.delete(int(self._channel.id), m))
            self._shown.pop()

    async def _patiently(self, call: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(_TRIES - 1):
            try:
                return await call()
            except FloodError as error:
                # Only a refusal is tried again: after a timeout the message may have arrived.
                if error.retry_after > _LONGEST_PAUSE:
                    raise
                await self._host.clock.sleep(error.retry_after)
        return await call()

    async def _type(self) -> None:
        thread = int(self._channel.thread) if self._channel.thread else None
        for _ in range(int(_TYPING_MOST / _TYPING_EVERY)):
            try:
                await self._api.typing(int(self._channel.id), thread)
            except RetriableError as error:
                await self._host.clock.sleep(error.retry_after)
            except ConnectorError:
                return  # the answer itself will run into the same and say so
            await self._host.clock.sleep(_TYPING_EVERY)

    def _end_typing(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None


async def _at_once(call: Callable[[], Awaitable[Any]]) -> Any:
    return await call()
