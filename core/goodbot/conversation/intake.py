# SPDX-License-Identifier: Apache-2.0
"""What is decided about events as they come in, within the transaction that stores them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence

import aiosqlite

from goodbot.access.admission import Admission
from goodbot.access.authorization import Authorization
from goodbot.access.limits import Undo
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    Event,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
)
from goodbot.base.clock import Clock
from goodbot.conversation import one_commit, sanitize
from goodbot.conversation.captures import Captured, Capturing
from goodbot.conversation.masking import Masking
from goodbot.conversation.notes import Notes
from goodbot.conversation.ratings import Ratings
from goodbot.conversation.under_way import UnderWay
from goodbot.store import Store, inbox

AtOnce = Callable[[aiosqlite.Connection, Event], Awaitable[Receipt | None]]
"""What is done of an event in its transaction; returns the receipt of one of which nothing is left to do."""


class EventIntake:
    """Lets in, refuses, rates, and puts into the inbox what is to be done."""

    def __init__(
        self,
        *,
        store: Store,
        authorization: Authorization,
        clock: Clock,
        admission: Admission,
        ratings: Ratings,
        capturing: Capturing,
        notes: Notes,
        at_once: AtOnce,
    ) -> None:
        """`at_once` does what a command that rates says."""
        self._admission, self._ratings, self._capturing = admission, ratings, capturing
        self._notes, self._clock, self._at_once = notes, clock, at_once
        self.progress = ratings.progress
        self.under_way = UnderWay(authorization, admission.note)
        self.ready = Masking(store, capturing).ready

    async def each(
        self,
        db: aiosqlite.Connection,
        events: list[Event],
        refused: Sequence[Receipt | None],
        changed: Container[object],
        counted: list[Undo],
        *,
        anywhere: bool,
    ) -> tuple[list[Receipt], list[Captured]]:
        """Decide about each event that is not refused already.

        Args:
            db: Within the transaction.
            events: What has come in.
            refused: The receipts of those that cannot be stored as they are.
            changed: Where somebody rates in this very commit.
            counted: What takes back that something was counted, for a commit that fails.
            anywhere: Its people may rate what they see of other connectors, too (INBOX).

        Returns:
            Their receipts, and what was captured.
        """
        captured: list[Captured] = []

        async def take(db: aiosqlite.Connection, event: Event) -> Receipt:
            if event.user.is_bot:
                return event.receipt(Outcome.IGNORED)
            if event.channel.kind is ChannelKind.ENCRYPTED:  # what we could not keep to ourselves
                return event.receipt(Outcome.DENIED)
            if isinstance(event, RatingEvent):
                moved = sanitize.is_rating(event, RatingKind.RETRACT) and sanitize.place(event) in changed
                return await self._ratings.rate(db, event, moved=moved, anywhere=anywhere)
            if isinstance(event, CaptureEvent):
                captured.append(one := await self._capturing.take(db, event))
                await self._ratings.taint(db, one.changes)
                return one.receipt
            return await self._to_inbox(db, event)

        with self._admission.counting(counted):
            receipts = await one_commit.each(db, events, refused, take)
        return receipts, captured

    async def _to_inbox(self, db: aiosqlite.Connection, event: Event) -> Receipt:
        """A message, a press or a command."""
        known = await inbox.receipt(db, event)
        if known is not None:
            return sanitize.again(event, known)
        receipt = await self._admission.decide(db, event)
        if receipt.outcome is Outcome.ACCEPTED and self.under_way.is_full(event):
            receipt = event.receipt(Outcome.IGNORED, self.under_way.told_once(event))
        open_ = receipt.outcome is Outcome.ACCEPTED
        if open_ and isinstance(event, PressEvent) and receipt.turn:
            noted = await self._notes.pressed(db, event, receipt.turn)
            receipt = event.receipt(receipt.outcome, noted, turn=receipt.turn)
        closed = await self._at_once(db, event) if open_ and sanitize.is_rating_command(event) else None
        if open_ or (receipt.text and not sanitize.is_one_too_many(receipt)):
            work = sanitize.to_do(event, receipt)
            open_ = open_ and closed is None
            await inbox.insert(db, work, closed or receipt, self._clock.now(), open_=open_)
        if receipt.outcome is Outcome.ACCEPTED:
            self.under_way.takes(event)
        return receipt
