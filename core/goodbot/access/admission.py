# SPDX-License-Identifier: Apache-2.0
"""Who is let in: whether a message is answered, and what a press asks for. Part of one transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager

import aiosqlite

from goodbot.access import pairing, strangers
from goodbot.access.authorization import Authorization, person
from goodbot.access.limits import Quotas, Undo
from goodbot.api import actions
from goodbot.api.commands import Grant
from goodbot.api.events import (
    ChannelKind,
    CommandEvent,
    Event,
    MessageEvent,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
)
from goodbot.api.sentences import Reason, because
from goodbot.base import one_time
from goodbot.base.clock import Clock
from goodbot.store import channels, refusals, retries

_FEW = 200
"""Bytes of a command that are not counted."""
_BACK = ("undo", "u", "forget")
"""Commands that take back."""
_WORDS = ("reason", "better")
"""Commands whose words are counted as what they are kept as: `Admission.unkept`."""


class Admission:
    """Decides about messages and presses; ratings and commands have rules of their own."""

    def __init__(self, authorization: Authorization, quotas: Quotas, clock: Clock) -> None:
        self._authorization = authorization
        self._quotas = quotas
        self._clock = clock

    async def decide(self, db: aiosqlite.Connection, event: Event) -> Receipt:
        """The receipt of a new event that is no rating; ACCEPTED is what is done after the commit."""
        if await refusals.knows(db, event):
            return event.receipt(Outcome.DENIED)
        receipt = await self._decide(db, event)
        if receipt.outcome is Outcome.DENIED and not receipt.text:
            await refusals.add(db, event, self._clock.now())
        return receipt

    async def _decide(self, db: aiosqlite.Connection, event: Event) -> Receipt:
        if (seen := await self._seen_code(db, event)) is not None:
            return seen
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

    async def still(self, db: aiosqlite.Connection, event: Event) -> bool:
        """Whether what was let in may be answered when its turn comes: a channel may be off by then.

        At a start it is not known yet who is in a platform's groups: what came before stays let in.
        """
        if self._authorization.waits_for_groups(event.user.connector):
            return event.channel.kind is not ChannelKind.SHARED or await self.may_talk(db, event)
        rates = isinstance(event, MessageEvent) or self._authorization.may_rate(event.user)
        return rates and await self.may_talk(db, event)

    def too_much(self, event: Event, size: int, *, counts: bool = True) -> Reason | None:
        """Why so many bytes of this person's are not kept; owners' always are. `counts`: as in `Quotas`."""
        owns = self._authorization.may(event.user, Grant.ADMINISTER)
        return None if owns else self._quotas.too_much(person(event.user), size, counts=counts)

    def too_many(self, event: RatingEvent | CommandEvent | PressEvent) -> Reason | None:
        """Why no more ratings and commands of somebody who may rate are taken; owners' always are.

        To be asked before anything is acknowledged, and not again of a rating that a command has given.
        """
        if self._authorization.may(event.user, Grant.ADMINISTER):
            return None
        if isinstance(event, RatingEvent):
            back = event.kind is RatingKind.RETRACT
        else:
            typed = actions.typed(event) if isinstance(event, PressEvent) else event
            back = typed.name in _BACK
        return self._quotas.too_many(person(event.user), speaks_for=event.user.speaks_for, back=back)

    def counting(self, undo: list[Undo]) -> AbstractContextManager[None]:
        """As `Quotas.counting`."""
        return self._quotas.counting(undo)

    def note(self, undo: Undo) -> None:
        """As `Quotas.note`."""
        self._quotas.note(undo)

    def no_reserve(self) -> Reason | None:
        """Why nothing of other programs is kept at present."""
        return self._quotas.no_reserve()

    def unkept(self, event: RatingEvent) -> Reason | None:
        """Why a reason or a better answer is not kept; a rating always is."""
        if event.kind not in (RatingKind.COMMENT, RatingKind.BETTER):
            return None
        return self._quotas.no_reserve("no_space_words") or self.too_much(event, len(event.text.encode()))

    async def _message(self, db: aiosqlite.Connection, event: MessageEvent) -> Receipt:
        if not event.addressed:
            return event.receipt(Outcome.IGNORED)
        if await self.may_talk(db, event):
            receipt = self._in_time(event)
            accepted = receipt.outcome is Outcome.ACCEPTED
            if accepted and event.attachments and not event.text.strip():
                return event.receipt(Outcome.IGNORED, because("files"))
            refused = self.too_much(event, len(event.text.encode())) if accepted else None
            return event.receipt(Outcome.IGNORED, refused) if refused else receipt
        if event.channel.kind is ChannelKind.PRIVATE:
            told = self._wrong_code(event) or await strangers.who_talks(db, event.user, self._clock.now())
            return event.receipt(Outcome.DENIED, told)
        owns = self._authorization.may(event.user, Grant.ADMINISTER)  # others cannot change it
        return event.receipt(Outcome.DENIED, because("off_here") if owns else None)

    async def _pair(self, db: aiosqlite.Connection, event: MessageEvent) -> Receipt | None:
        """Make the sender of the connector's one-time code an owner; None when it is none.

        The code itself is not stored anywhere. Wrong ones count, whoever they came from.
        """
        if event.channel.kind is not ChannelKind.PRIVATE:
            return None
        counts = not self._authorization.may(event.user, Grant.ADMINISTER)
        if not await pairing.pair(db, event.user, event.text, self._clock.now(), counts=counts):
            return None
        return event.receipt(Outcome.PAIRED, because("paired"))

    async def _seen_code(self, db: aiosqlite.Connection, event: Event) -> Receipt | None:
        """Of a code that others read: it ends, nothing of it is stored, and whoever sent it makes another."""
        if event.channel.kind is not ChannelKind.SHARED or not isinstance(event, MessageEvent | CommandEvent):
            return None
        text = event.text if isinstance(event, MessageEvent) else event.args
        purpose = await pairing.seen(db, event.user.connector, text, self._clock.now())
        if not purpose:
            return None
        key = "seen_code" if purpose == pairing.PAIR else "seen_link"
        return event.receipt(Outcome.DENIED, because(key, connector=event.user.connector))

    def _wrong_code(self, event: MessageEvent) -> Reason | None:
        """What a stranger is told of what looks like a pairing code, whether there is one to find or not."""
        if one_time.is_like(event.text) and self._quotas.codes.allow(person(event.user)):
            return because("wrong_code", connector=event.user.connector)
        return None

    async def _press(self, db: aiosqlite.Connection, event: PressEvent) -> Receipt:
        """Another answer, for whoever may talk here and rate; the receipt names the one it replaces.

        Anything else that a client says was pressed asks for nothing.
        """
        if actions.hint(event.action) is None:
            return event.receipt(Outcome.IGNORED)
        if not await self.may_talk(db, event):
            return event.receipt(Outcome.DENIED)
        if not self._authorization.may(event.user, Grant.RATE):
            refused = await strangers.who_teaches(db, event.user, event.channel)
            return event.receipt(Outcome.DENIED, refused)
        turn = await retries.pressed(db, event)
        if turn is None:
            return event.receipt(Outcome.UNKNOWN_TARGET, because("not_mine"))
        if await retries.replaced(db, turn):
            return event.receipt(Outcome.UNKNOWN_TARGET, because("replaced"))
        # Whoever may rate asks as often as they like, but each of these costs an answer.
        if not self._quotas.messages.allow(person(event.user)):
            return event.receipt(Outcome.IGNORED, because("too_often"))
        return event.receipt(Outcome.ACCEPTED, turn=turn)

    def _in_time(self, event: Event) -> Receipt:
        """Whether a person has not asked too often; those who teach and own may ask as they like.

        A command's words count where they are many: a rating is typed in few, also by who has sent too much.
        """
        trusted = self._authorization.may(event.user, Grant.RATE)
        if trusted and isinstance(event, CommandEvent | PressEvent) and (many := self.too_many(event)):
            return event.receipt(Outcome.IGNORED, many)
        allowed = trusted or self._quotas.messages.allow(person(event.user))
        size = 0
        if isinstance(event, CommandEvent) and event.name not in _WORDS:
            size = len(event.args.encode())
        refused = self.too_much(event, size) if allowed and size > _FEW else None
        return event.receipt(Outcome.ACCEPTED if allowed and not refused else Outcome.IGNORED, refused)
