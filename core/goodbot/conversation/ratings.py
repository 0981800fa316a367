# SPDX-License-Identifier: Apache-2.0
"""What becomes of a rating event: who may rate what, the ledger, and what the rater is told."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.access import strangers
from goodbot.access.admission import Admission
from goodbot.access.authorization import Authorization, person
from goodbot.access.inbox import shown
from goodbot.api.actions import retry_row, run
from goodbot.api.commands import Grant
from goodbot.api.events import Button, Outcome, RatingEvent, RatingKind, Receipt
from goodbot.api.sentences import Reason, because
from goodbot.api.texts import say
from goodbot.base.clock import Clock
from goodbot.conversation import sanitize
from goodbot.conversation.notes import Notes
from goodbot.conversation.notifications import RoundCounter, can_be_begun
from goodbot.store import adapters, judgements, ledger, placing, refusals, retries, runs
from goodbot.store.ledger import LabelChange
from goodbot.store.training_pool import Pool


class Ratings:
    """Appends rating events and folds them, within the caller's transaction."""

    def __init__(
        self,
        *,
        authorization: Authorization,
        admission: Admission,
        progress: RoundCounter,
        clock: Clock,
        pool: Pool,
        notes: Notes,
    ) -> None:
        self._notes = notes
        self._authorization = authorization
        self._admission = admission
        self.progress = progress
        self._clock = clock
        self._pool = pool

    async def rate(
        self,
        db: aiosqlite.Connection,
        event: RatingEvent,
        turn: str | None = None,
        *,
        moved: bool = False,
        anywhere: bool = False,
    ) -> Receipt:
        """Append one rating event and fold it. Part of a transaction of the caller's.

        `turn` is given by a command that has found it already; else the event names it. `moved` as
        in `retries.meant`, `anywhere` as in `Dispatcher.submit`.
        """
        found = await ledger.find(db, event, moved=moved)
        if found.receipt is not None:
            return sanitize.again(event, found.receipt)
        if not self._authorization.may(event.user, Grant.RATE):
            return await self._refuse_rating(db, event)
        if turn is None and await refusals.knows(db, event):
            return event.receipt(Outcome.DENIED)
        if turn is None and (many := self._admission.too_many(event)) is not None:
            return event.receipt(Outcome.IGNORED, many)
        here = turn or found.turn
        turn = here or (await shown(db, self._authorization, event) if anywhere else None)
        if turn is None and (found.known or not (event.message_id or event.retracts)):
            return event.receipt(Outcome.UNKNOWN_TARGET, because("not_mine"))
        if event.kind in (RatingKind.COMMENT, RatingKind.BETTER) and (wrong := sanitize.unfit(event.text)):
            return event.receipt(Outcome.FAILED, wrong)
        if (unkept := self._admission.unkept(event)) is not None:
            return event.receipt(Outcome.IGNORED, unkept)
        receipt = event.receipt(Outcome.ACCEPTED if turn else Outcome.UNKNOWN_TARGET, turn=turn or "")
        rater, now = person(event.user), self._clock.now()
        heard = found.heard or turn != found.turn
        event = await placing.placed(db, event, turn, rater, heard=heard)
        change = await ledger.insert(db, event, turn, rater, receipt, now, overtaken=found.overtaken)
        undone = await self.taint(db, [change] if change else [])
        if turn is not None and event.kind is RatingKind.RETRACT:  # it may have been a reason alone
            undone = bool(await adapters.taint(db, self._pool.scope, turn, runs.CHANGED)) or undone
        if turn is not None:  # the effect can be told only now
            effect = await self.progress.effect(db, event, turn, rater, change, undone=undone)
            again = await self._again(db, event, turn) if here else ()  # one tries again there
            offer = (*again, *effect.offer, *self._train(event, effect.reasons))
            noted = await self._noted(db, event, turn, change)
            receipt = event.receipt(Outcome.ACCEPTED, *effect.reasons, noted, turn=turn, offer=offer)
            await ledger.set_receipt(db, event, receipt)
        return receipt

    async def chosen(self, db: aiosqlite.Connection, event: RatingEvent) -> None:
        """Fold what a blind choice, or taking one back, says of one of its answers; nobody is told of it."""
        rater = person(event.user)
        event = await placing.placed(db, event, event.turn, rater)
        receipt = event.receipt(Outcome.ACCEPTED, turn=event.turn)
        change = await ledger.insert(db, event, event.turn, rater, receipt, self._clock.now())
        await self.taint(db, [change] if change else [])

    async def _again(self, db: aiosqlite.Connection, event: RatingEvent, turn: str) -> tuple[Button, ...]:
        """Another answer, for who has called the one that stands there bad and may talk there."""
        bad = event.kind is RatingKind.RATE and (event.value or 0.0) < 0
        if not bad or not await self._admission.may_talk(db, event):
            return ()
        return () if await retries.replaced(db, turn) else retry_row(event.user.language)

    def _train(self, event: RatingEvent, reasons: Sequence[Reason]) -> tuple[Button, ...]:
        """The training, where it has its ratings and waits, for an owner to whom this rating is answered."""
        answered = event.kind is RatingKind.RATE and not event.source.startswith("reaction")
        if not answered or not can_be_begun(reasons):
            return ()
        if not self._authorization.may(event.user, Grant.ADMINISTER):
            return ()
        return (run("train", say("button_train_now", event.user.language)),)

    async def _noted(
        self, db: aiosqlite.Connection, event: RatingEvent, turn: str, change: LabelChange | None
    ) -> Reason | None:
        """What the next answer will follow, of whoever may talk there."""
        typed = event.kind in (RatingKind.COMMENT, RatingKind.BETTER)
        bad = change is not None and (change.after or 0.0) < 0 <= (change.before or 0.0)
        if not (typed or bad) or not await self._admission.may_talk(db, event):
            return None
        return await (self._notes.said if typed else self._notes.counts)(db, event, turn)

    async def _refuse_rating(self, db: aiosqlite.Connection, event: RatingEvent) -> Receipt:
        """Strangers' reactions vanish; a talker who pressed a button is told who teaches."""
        deliberate = not event.source.startswith("reaction")
        if not deliberate:
            return event.receipt(Outcome.DENIED)
        await refusals.add(db, event, self._clock.now())
        talks = await self._admission.may_talk(db, event)
        why = await strangers.who_teaches(db, event.user, event.channel, talks=talks)
        return event.receipt(Outcome.DENIED, why)

    async def taint(self, db: aiosqlite.Connection, changes: Sequence[LabelChange]) -> bool:
        """Adapters trained on labels that have changed are marked, if any: the scheduler heals that.

        Also those that have learnt from what an agent's steps were credited with by such a label.
        """
        marked: list[int] = []
        for change in changes:
            if not change.claimed:
                continue
            for turn in [change.turn, *await judgements.credited(db, change.turn)]:
                marked += await adapters.taint(db, self._pool.scope, turn, runs.CHANGED)
        return bool(marked)
