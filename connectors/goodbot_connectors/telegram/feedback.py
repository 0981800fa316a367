# SPDX-License-Identifier: Apache-2.0
"""What a person is shown of what became of their rating, press or command, in the quietest way.

A press gets a toast. In a private chat a reaction gets a line under the answer for ten seconds; in a
group, where nothing can be said to one person alone, our own reaction for as long. Only what was
typed is answered with a message.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeGuard

from goodbot.api.actions import RETRY
from goodbot.api.commands import rates
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.kit.rate_limit import Budget
from goodbot_connectors.kit.receipt_marks import ReceiptMarks
from goodbot_connectors.telegram import render
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.keyboards import Keyboards, with_typed

logger = logging.getLogger(__name__)

_OPEN_QUERIES = 1000
_A_SECOND = 20
"""Telegram bears 30 messages a second from a bot, and answers need them more."""

Send = Callable[[ChannelRef, Reply], Awaitable[Any]]


class Feedback:
    """Tells people; a confirmation that fails is no reason to try anything again."""

    def __init__(
        self, api: Api, keyboards: Keyboards, marks: ReceiptMarks | None, send: Send, clock: Clock
    ) -> None:
        self._api, self._keyboards, self._marks, self._send = api, keyboards, marks, send
        self._budget = Budget(clock, _A_SECOND)
        self._queries: dict[str, str] = {}

    def expect(self, queries: dict[str, str]) -> None:
        """Remember the callback queries that wait for an answer, by event."""
        self._queries |= queries
        for name in list(self._queries)[:-_OPEN_QUERIES]:
            del self._queries[name]

    async def tell(self, event: Event, receipt: Receipt) -> None:
        """Show a receipt to whoever it is for."""
        query = self._queries.pop(event.event_id, "")
        text = receipt.text
        if query:
            toast = text if len(text) <= render.TOAST_LIMIT or _shared(event) else ""
            await self.answer(query, toast)
            text = "" if toast else text
        if isinstance(event, RatingEvent) and event.kind in (RatingKind.RATE, RatingKind.RETRACT):
            await self._rated(event, receipt, "" if query else text)
        elif _shared(event) and _is_rating_command(event) and receipt.outcome is Outcome.ACCEPTED:
            await self._mark(event)
        elif _is_retry(event) and 0 < len(text) <= render.LABEL_LIMIT and not _shared(event):
            await self._keyboards.note(event.channel.id, event.message_id, event.turn, text)
        elif text and not (_shared(event) and isinstance(event, (RatingEvent, PressEvent))):
            await self._say(event, receipt)

    async def answer(self, query: str, text: str = "") -> None:
        """End the spinner of a press, with a toast if there is something to say."""
        try:
            await self._api.answer(query, render.toast(text))
        except ConnectorError as error:
            logger.debug("telegram: a press was not answered: %s", error)

    async def _rated(self, event: RatingEvent, receipt: Receipt, text: str) -> None:
        """The effect of a rating, and what its rater may do next; left out in a flood of ratings."""
        if not self._budget.take():
            return
        if _shared(event):
            if text and receipt.outcome is Outcome.ACCEPTED:
                await self._mark(event)
            return
        turn, message = receipt.turn or event.turn, event.message_id
        if not turn or not message:
            return
        offer = with_typed(receipt.offer, event.user.language)
        if text and receipt.outcome is Outcome.ACCEPTED:
            await self._keyboards.note(event.channel.id, message, turn, text, offer)
        else:
            await self._keyboards.offer(event.channel.id, message, turn, offer)

    async def _mark(self, event: Event) -> None:
        message_id = getattr(event, "message_id", "")
        if message_id and self._marks is not None:
            await self._marks.put((event.channel.id, message_id))

    async def _say(self, event: Event, receipt: Receipt) -> None:
        """A silent message, with an offer that only a private chat shows."""
        offer = () if _shared(event) else with_typed(receipt.offer, event.user.language)
        await self._keyboards.prepare(receipt.turn, offer)
        reply = Reply(
            text=receipt.text,
            turn=receipt.turn,
            buttons=offer,
            silent=True,
            reply_to=getattr(event, "message_id", ""),
        )
        try:
            await self._send(event.channel, reply)
        except RetriableError:
            if isinstance(event, (CommandEvent, MessageEvent)):
                raise
            logger.debug("telegram: a confirmation was not sent")


def _shared(event: Event) -> bool:
    return event.channel.kind is not ChannelKind.PRIVATE


def _is_retry(event: Event) -> TypeGuard[PressEvent]:
    return isinstance(event, PressEvent) and event.action.startswith(f"{RETRY}:")


def _is_rating_command(event: Event) -> bool:
    return isinstance(event, CommandEvent) and rates(event.name)
