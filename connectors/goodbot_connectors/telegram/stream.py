# SPDX-License-Identifier: Apache-2.0
"""One streamed answer: "typing", then words that grow by drafts or edits, then the final message."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Reply
from goodbot.api.reply_stream import ReplyStream
from goodbot.api.texts import say
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError

from goodbot_connectors.kit.backoff import FloodError, jittered, patiently
from goodbot_connectors.kit.rate_limit import Throttle
from goodbot_connectors.telegram import render
from goodbot_connectors.telegram.api import Api, RefusedError, SentMessage
from goodbot_connectors.telegram.config import TelegramSettings

logger = logging.getLogger(__name__)


_TYPING_EVERY = 4.5
_TYPING_MOST = 600.0

Shown = Callable[[Sequence[MessageRef], Reply], Awaitable[None]]
"""Told which messages now carry an answer."""
Ended = Callable[[Sequence[MessageRef]], None]
"""Told which messages were to be replaced, however that came out."""


class TelegramStream(ReplyStream):
    """Keeps a chat's messages equal to what `render` makes of the answer so far.

    In a private chat what is being written is a draft: it needs no message, so a crash leaves
    none behind, and the phone rings once, with the whole answer. Elsewhere, where a message is
    replaced, and where the server knows no drafts, the message is edited at the platform's pace.
    """

    def __init__(
        self,
        *,
        host: ConnectorHost,
        api: Api,
        pace: Throttle,
        settings: TelegramSettings,
        channel: ChannelRef,
        reply_to: str = "",
        replaces: Sequence[MessageRef] = (),
        shown: Shown | None = None,
        ended: Ended | None = None,
    ) -> None:
        self._host, self._api, self._pace, self._settings = host, api, pace, settings
        # What another answer needs beside the messages of the one before stands where that stands.
        self._channel, self._reply_to = channel, reply_to or (replaces[0].id if replaces else "")
        self._text = ""
        # Nothing is known of what stands in an earlier answer's messages: the first edit counts.
        self._shown = [(SentMessage(int(m.channel.id), int(m.id)), dict[str, Any]()) for m in replaces]
        self._told, self._ended, self._replaces = shown, ended, replaces
        self._typing: asyncio.Task[None] | None = None
        private = channel.kind is ChannelKind.PRIVATE
        self._interval = settings.edit_interval if private else settings.group_edit_interval
        drafts = private and settings.drafts and not replaces
        self._draft = random.randrange(1, 2**31) if drafts else 0  # noqa: S311

    def begin(self) -> None:
        """Say that somebody is typing until there is something to read."""
        self._typing = self._host.spawn(self._type(), "telegram typing")

    async def append(self, text: str) -> None:
        self._text += text
        await self.note(self._text)

    async def note(self, text: str) -> None:
        if not text.strip() or not self._pace.due(self._channel.id):
            return
        reply = Reply(text=text, reply_to=self._reply_to)
        try:
            if self._draft:
                await self._show_draft(reply)
            if not self._draft:
                await self._show(reply)
        except FloodError as error:
            self._pace.hold(self._channel.id, jittered(error.retry_after))
        except FatalConnectorError:
            raise
        except ConnectorError as error:
            # What could not be shown now is part of what `finish` shows.
            logger.debug("telegram: an edit was left out: %s", error)

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        self._end_typing()
        if not reply.reply_to:
            reply = replace(reply, reply_to=self._reply_to)
        try:
            count = await self._show(reply, whole=True)
            sent = tuple(self._ref(sent) for sent, _ in self._shown)
            if self._told is not None:
                await self._told(sent[:count], reply)
            return sent
        finally:
            if self._ended is not None:
                self._ended(self._replaces)

    async def cancel(self, reason: str) -> None:
        await self.finish(Reply(text=reason, reply_to=self._reply_to))

    async def _show_draft(self, reply: Reply) -> None:
        """The part that is being written now; the parts before it come at the end."""
        parts = render.messages(self._channel, reply)
        if not parts:  # nothing that can be seen yet
            return
        try:
            await self._api.draft(parts[-1], self._draft)
        except RefusedError as error:
            logger.info("telegram: no drafts here, messages are edited instead: %s", error)
            self._draft = 0
        else:
            self._end_typing()
            self._pace.hold(self._channel.id, self._interval)

    async def _show(self, reply: Reply, *, whole: bool = False) -> int:
        """Returns how many messages it takes."""
        buttons = self._settings.group_buttons
        wanted = render.messages(self._channel, reply, group_buttons=buttons)
        if whole and not wanted:  # characters that are left out, and no others
            reply = replace(reply, text=say("no_words", self.language))
            wanted = render.messages(self._channel, reply, group_buttons=buttons)
        for n, message in enumerate(wanted):
            if n < len(self._shown) and self._shown[n][1] == message:
                continue
            if n < len(self._shown):
                sent = await self._changed(self._shown[n][0], message, patient=whole)
                self._shown[n] = (sent, message)
            else:
                sent = await self._sent(message, patient=whole)
                self._shown.append((sent, message))
            self._end_typing()
            self._pace.hold(self._channel.id, self._interval)
        if whole:
            await self._take_away(len(wanted))
        return len(wanted)

    async def _changed(self, sent: SentMessage, message: dict[str, Any], *, patient: bool) -> SentMessage:
        """Edit a message; where that is not possible any more, the words come in a new one."""
        edit = render.edit(message | {"chat_id": sent.chat_id}, sent.message_id)
        try:
            await patiently(self._host.clock, lambda: self._api.edit(edit), patient=patient)
        except RefusedError as error:
            logger.info("telegram: a message cannot be edited: %s", error)
            return await self._sent(message, patient=patient)
        return sent

    async def _sent(self, message: dict[str, Any], *, patient: bool) -> SentMessage:
        """Send a new message."""
        sent = await patiently(self._host.clock, lambda: self._api.send(message), patient=patient)
        await self.created(self._ref(sent))
        return sent

    async def _take_away(self, count: int) -> None:
        """Delete messages beyond the first `count`, or say that their words do not hold any more."""
        kept = self._shown[:count]
        for sent, _ in self._shown[count:]:
            try:
                await patiently(self._host.clock, lambda s=sent: self._api.delete(*s))
            except RefusedError:  # after 48 hours, or gone already
                kept += await self._withdrawn(sent)
        self._shown = kept

    async def _withdrawn(self, sent: SentMessage) -> list[tuple[SentMessage, dict[str, Any]]]:
        """A message that must stay, with other words; nothing if it is gone."""
        [message] = render.messages(self._channel, Reply(text=say("part_replaced", self.language)))
        edit = render.edit(message | {"chat_id": sent.chat_id}, sent.message_id)
        try:
            await patiently(self._host.clock, lambda: self._api.edit(edit))
        except RefusedError as error:
            logger.debug("telegram: an old part is gone: %s", error)
            return []
        return [(sent, message)]

    def _ref(self, sent: SentMessage) -> MessageRef:
        """The channel is named by the id that it has by now."""
        channel = replace(self._channel, id=str(sent.chat_id))
        return MessageRef(channel=channel, id=str(sent.message_id))

    async def _type(self) -> None:
        thread = int(self._channel.thread) if self._channel.thread else None
        for _ in range(int(_TYPING_MOST / _TYPING_EVERY)):
            try:
                await self._api.typing(int(self._channel.id), thread)
            except RetriableError as error:
                await self._host.clock.sleep(jittered(error.retry_after))
            except ConnectorError:
                return  # the answer itself will run into the same and say so
            await self._host.clock.sleep(_TYPING_EVERY)

    def _end_typing(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
