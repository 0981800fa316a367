# SPDX-License-Identifier: Apache-2.0
"""One answer on its way to Discord."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from goodbot.api.events import Button, ChannelKind, MessageRef, Reply
from goodbot.base.errors import RetriableError

from goodbot_connectors.discord import render
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.places import where
from goodbot_connectors.discord.presses import AnswerRef
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.edits import Body, EditedStream

Sent = Callable[[Sequence[MessageRef], Reply], Awaitable[None]]
Prepare = Callable[[Sequence[Button], AnswerRef], Awaitable[None]]
"""Keeps what does not fit a button."""

_MESSAGES = "/channels/{channel_id}/messages"
MESSAGE = f"{_MESSAGES}/{{message_id}}"


class DiscordStream(EditedStream):
    """By edits, in the place where it was asked."""

    def __init__(self, *, api: Api, told: Sent, prepare: Prepare, **options: Any) -> None:
        super().__init__(**options)
        self._api, self._told, self._prepare = api, told, prepare
        self.nonce = uuid4().hex[:16]
        """A message that is sent once more, after an error or a crash, is the same one to Discord."""
        self._posted = 0
        self._doubtful = False
        """The next message may be there already, with fewer words: its nonce brings it back as it is.

        After a crash, too; then what comes back tells."""
        self._silent = False

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        await self._prepare(reply.buttons, AnswerRef(turn=reply.turn))
        return await super().finish(reply)

    def bodies(self, reply: Reply) -> Sequence[Body]:
        self._silent = reply.silent
        return render.messages(reply)

    async def post(self, n: int, body: Body, *, patient: bool) -> str:
        # Only in a server it must be said to whom we talk.
        answers = n == 0 and self.channel.kind is not ChannelKind.PRIVATE
        new = render.new(
            dict(body),
            nonce=f"{self.nonce}-{self._posted}",
            silent=self._silent,
            reply_to=self.reply_to if answers else "",
        )
        try:
            sent = await self._api.call(
                "POST", _MESSAGES, body=new, patient=patient, channel_id=where(self.channel)
            )
        except FloodError:  # it was not heard
            raise
        except RetriableError:
            self._doubtful = True
            raise
        id_ = identifier(sent.get("id"))
        there = (sent.get("content"), bool(sent.get("components")))
        if self._doubtful or there != (body["content"], bool(body["components"])):
            await self.edit(id_, body, patient=patient)
            self._doubtful = False
        self._posted += 1
        return id_

    async def edit(self, id_: str, body: Body, *, patient: bool) -> None:
        await self._api.call(
            "PATCH", MESSAGE, body=body, patient=patient, channel_id=where(self.channel), message_id=id_
        )

    async def delete(self, id_: str) -> None:
        await self._api.call("DELETE", MESSAGE, channel_id=where(self.channel), message_id=id_)

    async def type(self) -> None:
        await self._api.call(
            "POST", "/channels/{channel_id}/typing", patient=False, channel_id=where(self.channel)
        )

    async def sent(self, messages: Sequence[MessageRef], reply: Reply) -> None:
        await self._told(messages, reply)
