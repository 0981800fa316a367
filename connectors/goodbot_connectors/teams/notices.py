# SPDX-License-Identifier: Apache-2.0
"""What a person is told of what became of their rating, press or command, in the quietest way.

It is a card in their personal chat, one that changes with each rating as long as it is our last message
there, and changes when something on it is pressed. In a group nobody else shall see it: it goes to the
personal chat, too, or, with the setting `targeted`, to them alone in the group. Only what was typed in a
group is answered there.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from goodbot.api.actions import RETRY
from goodbot.api.commands import rates
from goodbot.api.events import (
    Button,
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    Outcome,
    PressEvent,
    RatingEvent,
    Receipt,
)
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.kit.rate_limit import Budget
from goodbot_connectors.teams import cards, render
from goodbot_connectors.teams.outbox import MessageSender
from goodbot_connectors.teams.presses import AnswerRef
from goodbot_connectors.teams.references import References

logger = logging.getLogger(__name__)

_A_SECOND = 10
"""Confirmations of ratings; answers need what Teams bears more."""


class Feedback:
    """Tells people; a confirmation that fails is no reason to try anything again."""

    def __init__(
        self, outbox: MessageSender, references: References, clock: Clock, *, targeted: bool
    ) -> None:
        self._outbox, self._references, self._targeted = outbox, references, targeted
        self._budget = Budget(clock, _A_SECOND)
        self._told: dict[str, str] = {}
        """The latest card in each personal chat."""

    def forget(self, chat: str) -> None:
        """Know no card in a personal chat any more."""
        self._told.pop(chat, None)

    async def tell(self, event: Event, receipt: Receipt) -> None:
        """Show a receipt to whoever it is for. Raises RetriableError for what was typed only."""
        if isinstance(event, RatingEvent) and not self._budget.take():
            return
        try:
            if receipt.text:
                await self._say(event, receipt)
            elif isinstance(event, PressEvent) and (card := self._pressed_card(event)) is not None:
                ref, shown = card
                await self._outbox.put(ref, render.pressed(shown))
        except RetriableError:
            if _typed(event):
                raise
            logger.debug("teams: a confirmation was not shown")
        except ConnectorError as error:
            logger.info("teams: a confirmation was not shown: %s", error)

    async def _say(self, event: Event, receipt: Receipt) -> None:
        message, offer = getattr(event, "message_id", ""), _with_words(receipt.offer, event.user.language)
        about = AnswerRef(receipt.turn or getattr(event, "turn", ""), "" if _typed(event) else message)
        if _shared(event) and self._targeted:
            card = render.card(about, receipt.text, offer)
            await self._outbox.post(event.channel, card, to=event.user.id)
        elif _shared(event) and _typed(event) and not _rated_by_words(event, receipt):
            await self._outbox.post(event.channel, render.card(about, receipt.text))
        elif _shared(event):
            if chat := await self._references.chat(event.user.id):
                private = replace(event.channel, id=chat, kind=ChannelKind.PRIVATE, thread="")
                await self._newest(private, render.card(about, receipt.text))
        elif _typed(event):
            await self._outbox.post(event.channel, render.card(about, receipt.text, offer))
        elif (pressed := self._pressed_card(event)) is not None:
            await self._outbox.put(pressed[0], render.card(about, receipt.text, offer))
        else:
            await self._newest(event.channel, render.card(about, receipt.text, offer))

    async def _newest(self, chat: ChannelRef, card: dict[str, Any]) -> None:
        """Show a card in a personal chat: in place of the one before, if nothing has come since."""
        before = MessageRef(channel=chat, id=self._told.get(chat.id, ""))
        if before.id and self._outbox.is_last(before):
            return await self._outbox.put(before, card)
        self._told = dict(list(self._told.items())[-999:])
        self._told[chat.id] = await self._outbox.post(chat, card)

    def _pressed_card(self, event: Event) -> tuple[MessageRef, dict[str, Any]] | None:
        """The card of ours whose button was pressed, as far as we know it."""
        for id_ in (
            getattr(event, "reply_to", ""),
            getattr(event, "message_id", ""),
            self._told.get(event.channel.id, ""),
        ):
            ref = MessageRef(channel=event.channel, id=id_)
            shown = self._outbox.shown(ref) if id_ and not _rates(event) else None
            if shown is not None and "attachments" in shown:
                return ref, shown
        return None


def _with_words(offer: tuple[Button, ...], language: str) -> tuple[Button, ...]:
    """An offer to try again comes with the form for a reason and a better answer."""
    again = any(button.action.startswith(f"{RETRY}:") for button in offer)
    return (*offer, cards.why(language)) if again else offer


def _shared(event: Event) -> bool:
    return event.channel.kind is not ChannelKind.PRIVATE


def _rated_by_words(event: Event, receipt: Receipt) -> bool:
    """Whether it was `/rl good` or the like, and is counted."""
    return isinstance(event, CommandEvent) and receipt.outcome is Outcome.ACCEPTED and rates(event.name)


def _typed(event: Event) -> bool:
    """Whether it is words of a person, and no press that stands for them."""
    return isinstance(event, MessageEvent) or (isinstance(event, CommandEvent) and bool(event.message_id))


def _rates(event: Event) -> bool:
    return isinstance(event, RatingEvent)
