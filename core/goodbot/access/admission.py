"""Who is let in: whether a message is answered, and what a press asks for. Part of one transaction."""

from __future__ import annotations

from dataclasses import replace

import aiosqlite

from goodbot.access import pairing, strangers
from goodbot.access.authorization import Authorization, person
from goodbot.access.limits import Quotas
from goodbot.api import actions
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, Event, MessageEvent, Outcome, PressEvent, Receipt
from goodbot.api.sentences import sentence
from goodbot.base.clock import Clock
from goodbot.store import channels, retries

_PAIRED = "You are my owner now: talk to me, rate my answers (the good ones too), and see `/rl help`."
_FILES = "I can read text only, so I have not looked at what you sent. Tell me in words?"
_FOREIGN = "That is not one of my answers."
REPLACED = "That answer was replaced already."
_TOO_OFTEN = "That was a lot at once: try again in a minute."


class Admission:
    """Decides about messages and presses; ratings and commands have rules of their own."""

    def __init__(self, authorization: Authorization, quotas: Quotas, clock: Clock) -> None:
        self._authorization = authorization
        self._quotas = quotas
        self._clock = clock

    async def decide(self, db: aiosqlite.Connection, event: Event) -> Receipt:
        """The receipt of a new event that is no rating; ACCEPTED is what is done after the commit."""
        if isinstance(event, MessageEvent):
            return await self._pair(db, event) or await self._message(db, event)
        if isinstance(event, PressEvent) and not actions.is_command(event):
            return await self._press(db, event)
        return self._in_time(event)

    async def may_talk(self, db: aiosqlite.Connection, event: Event) -> bool:
        """Whether this person is answered where the event happened."""
        shared = event.channel.kind is ChannelKind.SHARED  # no others are switched on
        enabled = shared and await channels.enabled(db, event.channel)
        return self._authorization.may_talk(event.user, event.channel, enabled=enabled)

    def too_much(self, event: Event, size: int) -> str:
        """Why so many bytes of this person's are not kept, in a sentence; owners' always are."""
        owns = self._authorization.may(event.user, Grant.ADMINISTER)
        return "" if owns else self._quotas.too_much(person(event.user), size)

    def no_reserve(self) -> str:
        """Why nothing of other programs is kept at present, in a sentence."""
        text = self._quotas.no_reserve()
        return sentence(text) if text else ""

    async def _message(self, db: aiosqlite.Connection, event: MessageEvent) -> Receipt:
        if not event.addressed:
            return Receipt(event_id=event.event_id, outcome=Outcome.IGNORED)
        if await self.may_talk(db, event):
            receipt = self._in_time(event)
            accepted = receipt.outcome is Outcome.ACCEPTED
            if accepted and event.attachments and not event.text.strip():
                return replace(receipt, outcome=Outcome.IGNORED, text=_FILES)
            text = self.too_much(event, len(event.text.encode())) if accepted else ""
            return replace(receipt, outcome=Outcome.IGNORED, text=text) if text else receipt
        private = event.channel.kind is ChannelKind.PRIVATE
        text = await strangers.who_talks(db, event.user) if private else ""
        return Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text=text)

    async def _pair(self, db: aiosqlite.Connection, event: MessageEvent) -> Receipt | None:
        """Make the sender of the connector's one-time code an owner; None when it is none.

        The code itself is not stored anywhere. Wrong ones count, whoever they came from.
        """
        if event.channel.kind is not ChannelKind.PRIVATE:
            return None
        counts = not self._authorization.may(event.user, Grant.ADMINISTER)
        if not await pairing.pair(db, event.user, event.text, self._clock.now(), counts=counts):
            return None
        return Receipt(event_id=event.event_id, outcome=Outcome.PAIRED, text=_PAIRED)

    async def _press(self, db: aiosqlite.Connection, event: PressEvent) -> Receipt:
        """Another answer, for whoever may talk here and rate; the receipt names the one it replaces.

        Anything else that a client says was pressed asks for nothing.
        """
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.IGNORED)
        if actions.hint(event.action) is None:
            return receipt
        if not await self.may_talk(db, event):
            return replace(receipt, outcome=Outcome.DENIED)
        if not self._authorization.may(event.user, Grant.RATE):
            text = await strangers.who_teaches(db, event.user, event.channel)
            return replace(receipt, outcome=Outcome.DENIED, text=text)
        turn = await retries.pressed(db, event)
        if turn is None:
            return replace(receipt, outcome=Outcome.UNKNOWN_TARGET, text=_FOREIGN)
        if await retries.replaced(db, turn):
            return replace(receipt, outcome=Outcome.UNKNOWN_TARGET, text=REPLACED)
        # Whoever may rate asks as often as they like, but each of these costs an answer.
        if not self._quotas.messages.allow(person(event.user)):
            return replace(receipt, text=_TOO_OFTEN)
        return replace(receipt, outcome=Outcome.ACCEPTED, turn=turn)

    def _in_time(self, event: Event) -> Receipt:
        """Whether a person has not asked too often; those who teach and own are not counted."""
        trusted = self._authorization.may(event.user, Grant.RATE)
        allowed = trusted or self._quotas.messages.allow(person(event.user))
        outcome = Outcome.ACCEPTED if allowed else Outcome.IGNORED
        return Receipt(event_id=event.event_id, outcome=outcome)
