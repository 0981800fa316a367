# SPDX-License-Identifier: Apache-2.0
"""What a person is shown of what became of their rating, press or command, and nobody else.

An interaction is answered where it happened, visible to them alone. A reaction gets our own as a nod,
for ten seconds, and a direct message where there is something to choose. What was typed in a server is
answered in a direct message.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    Receipt,
    Reply,
)
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.interactions import Interactions
from goodbot_connectors.discord.offers import Offers
from goodbot_connectors.discord.places import where
from goodbot_connectors.discord.presses import AnswerRef
from goodbot_connectors.kit.rate_limit import Budget
from goodbot_connectors.kit.receipt_marks import ReceiptMarks

logger = logging.getLogger(__name__)

_A_SECOND = 10
"""Discord bears 50 calls a second from a bot, and answers need them more."""

Send = Callable[[ChannelRef, Reply], Awaitable[Any]]
Private = Callable[[str], Awaitable[ChannelRef]]


class Feedback:
    """Tells people; a confirmation that fails is no reason to try anything again."""

    def __init__(
        self,
        api: Api,
        interactions: Interactions,
        offers: Offers,
        marks: ReceiptMarks | None,
        *,
        send: Send,
        private: Private,
        clock: Clock,
    ) -> None:
        self._api, self._interactions, self._offers, self._marks = api, interactions, offers, marks
        self._send, self._private = send, private
        self._budget = Budget(clock, _A_SECOND)

    async def tell(self, event: Event, receipt: Receipt) -> None:
        """Show a receipt to whoever it is for."""
        typed = isinstance(event, (CommandEvent, MessageEvent))
        message = "" if typed else getattr(event, "message_id", "")
        about = AnswerRef(receipt.turn or getattr(event, "turn", ""), message)
        exchange = self._interactions.of(event)
        if exchange is not None:
            await self._offers.prepare(receipt.offer, about)
            used = isinstance(event, PressEvent)
            untold = await exchange.hear(receipt.text, about, receipt.offer, used=used)
            receipt = replace(receipt, text=untold)
        if not receipt.text:
            return
        if isinstance(event, RatingEvent) and event.source.startswith("reaction:"):
            await self._nod(event, receipt, about)
        elif typed and event.channel.kind is ChannelKind.PRIVATE:
            await self._reply(event, receipt)
        else:
            await self._whisper(event, receipt, about)

    async def _nod(self, event: RatingEvent, receipt: Receipt, about: AnswerRef) -> None:
        """Left out in a flood of reactions."""
        if receipt.outcome is not Outcome.ACCEPTED or not self._budget.take():
            return
        if self._marks is not None:
            await self._marks.put((where(event.channel), event.message_id))
        if receipt.offer:
            await self._whisper(event, receipt, about)

    async def _reply(self, event: Event, receipt: Receipt) -> None:
        reply = Reply(text=receipt.text, turn=receipt.turn, buttons=receipt.offer, silent=True)
        try:
            await self._send(event.channel, reply)
        except ConnectorError as error:
            logger.warning("discord: an answer to a command was not sent: %s", error)

    async def _whisper(self, event: Event, receipt: Receipt, about: AnswerRef) -> None:
        await self._offers.whisper(
            self._api,
            self._private,
            event.user.id,
            receipt.text,
            about=about,
            offer=receipt.offer,
            place=event.channel,
            language=event.user.language,
        )
