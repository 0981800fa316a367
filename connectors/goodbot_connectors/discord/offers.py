# SPDX-License-Identifier: Apache-2.0
"""What is told to one person in a direct message, where an interaction's own answer cannot be used.

A reaction has no private answer on Discord, and an interaction's is good for fifteen minutes. What is
offered there is about an answer in another channel: which one is kept here, and looked up at the press.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import Button, ChannelKind, ChannelRef, Reply
from goodbot.base.errors import ConnectorError

from goodbot_connectors.discord import presses, render
from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.presses import AnswerRef
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.state import StateTexts

logger = logging.getLogger(__name__)

_MESSAGES = "/channels/{channel_id}/messages"


class Offers:
    """Whispers, and what their buttons stand for."""

    def __init__(self, host: ConnectorHost) -> None:
        self.actions = StateTexts(host, "actions", 500)
        """Actions that do not fit a button, by their key."""
        self.places = StateTexts(host, "offers", 500)
        """Of each offer's message: the person, and channel, thread and message of the answer."""

    @property
    def kept(self) -> Sequence[StateTexts]:
        """What outlives a restart."""
        return (self.actions, self.places)

    async def load(self) -> None:
        """Read what an earlier process has kept."""
        for kept in self.kept:
            await kept.load()

    async def prepare(self, buttons: Sequence[Button], about: AnswerRef) -> None:
        """Keep what does not fit a button; to be called before they are shown."""
        for button in buttons:
            if presses.too_long(button.action, about):
                await self.actions.put(presses.key(button.action), button.action)

    async def whisper(
        self,
        api: Api,
        private: Callable[[str], Awaitable[ChannelRef]],
        user: str,
        text: str,
        *,
        about: AnswerRef,
        offer: Sequence[Button] = (),
        place: ChannelRef,
        language: str = "",
    ) -> None:
        """Tell somebody, without a sound; left out where they take no direct messages."""
        buttons = render.with_form(offer, language)
        await self.prepare(buttons, about)
        try:
            chat = await private(user)
            for body in render.messages(Reply(text=text, buttons=buttons), about):
                new = render.new(body, nonce=uuid4().hex[:24], silent=True)
                sent = await api.call("POST", _MESSAGES, body=new, channel_id=chat.id)
                message = identifier(sent.get("id"))
                if body["components"] and message and place.kind is ChannelKind.SHARED:
                    where = f"{user} {place.id} {place.thread} {about.message}"
                    await self.places.put(message, where)
        except ConnectorError as error:
            logger.info("discord: somebody could not be told in private: %s", error)
