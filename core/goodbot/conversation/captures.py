# SPDX-License-Identifier: Apache-2.0
"""What becomes of an answer that another program has given. Part of one transaction."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.access.admission import Admission
from goodbot.access.authorization import Authorization, person
from goodbot.api.events import CaptureEvent, MessageRef, Outcome, Receipt
from goodbot.api.plugins import PluginHost
from goodbot.api.sentences import because
from goodbot.api.turns import Turn
from goodbot.base.clock import Clock
from goodbot.config.sections import ScopeKind
from goodbot.conversation import capture_rules, sanitize
from goodbot.store import adapters, inbox, ledger, messages, scopes, traces, turns
from goodbot.store.ledger import LabelChange
from goodbot.store.training_pool import Pool

MAIN = "main"


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    """A capture's receipt, the turn if it is a new one, and what the ratings that waited for it did."""

    receipt: Receipt
    turn: Turn | None = None
    changes: tuple[LabelChange, ...] = ()


class Capturing:
    """Stores captures as turns, those of one model call as one."""

    def __init__(
        self,
        *,
        authorization: Authorization,
        admission: Admission,
        plugins: PluginHost,
        clock: Clock,
        pool: Pool,
        vocabulary: int = 0,
        kind: ScopeKind = "shared",
    ) -> None:
        self._authorization = authorization
        self._admission = admission
        self._plugins = plugins
        self._clock = clock
        self._pool = pool
        self._vocabulary = vocabulary
        self._kind: ScopeKind = kind

    async def take(self, db: aiosqlite.Connection, event: CaptureEvent) -> Captured:
        """Store one, unless it came before or its user may not talk here."""
        if (receipt := await self.settled(db, event)) is not None:
            return Captured(receipt=receipt)
        call = traces.SameCall()
        if event.trace and event.kind == MAIN:
            call = await traces.same_call(db, event)
        seen = await self._turn(db, event)
        if call.turn:
            await self._join(db, event, call.turn, seen)
        else:
            await turns.insert(db, seen, trainable=self._teaches(seen))
        turn = call.turn or seen.id
        changes = await self._name(db, event, turn, call) if event.kind == MAIN else []
        receipt = event.receipt(Outcome.ACCEPTED, turn=turn)
        await inbox.insert(db, event, receipt, self._clock.now(), open_=False)
        return Captured(receipt=receipt, turn=None if call.turn else seen, changes=tuple(changes))

    async def settled(
        self, db: aiosqlite.Connection, event: CaptureEvent, *, counts: bool = True
    ) -> Receipt | None:
        """The receipt of one that came before, or that is not kept; None: it is. `counts`: as in `Quotas`."""
        if (known := await traces.known(db, event)) is not None:
            return sanitize.again(event, known)
        if not await self._admission.may_talk(db, event):
            return event.receipt(Outcome.DENIED, because("no_talker", person=person(event.user)))
        size = capture_rules.size(event)
        refused = self._admission.no_reserve() or self._admission.too_much(event, size, counts=counts)
        return event.receipt(Outcome.IGNORED, refused) if refused else None

    async def _turn(self, db: aiosqlite.Connection, event: CaptureEvent) -> Turn:
        """What the capture says; a version that we do not have is none of ours.

        Token ids that our own model cannot have given are dropped; the words stay.
        """
        version, model = event.version, self._pool.model
        own = await scopes.of(db, self._kind, event.channel, person(event.user))
        if version and not await adapters.exists(db, (self._pool.scope, own), model, version):
            version = None
        turn = capture_rules.turn_of(
            event, base=model, scope=self._pool.scope, now=self._clock.now(), version=version, own=own
        )
        return turn if turn.answered_by else turn.read_by(self._vocabulary)

    def _teaches(self, turn: Turn) -> bool:
        """Whether it may train; a plugin is asked only about what would."""
        if turn.kind != MAIN or not turn.response.strip():
            return False
        return capture_rules.trains(turn) and self._plugins.veto_capture(turn) is None

    async def _join(self, db: aiosqlite.Connection, event: CaptureEvent, turn: str, seen: Turn) -> None:
        """It is of a turn that is there; what our own server knows of the answer is the better source.

        Nobody puts words into the turn of somebody who may do more than they.
        """
        if seen.answered_by and not seen.tokens:
            return
        there = await turns.get(db, turn)
        if there is None:
            return
        same = there.response.split() == seen.response.split()
        level = self._authorization.level
        if (same or level(event.user) >= level(there.talker)) and self._teaches(seen):
            await traces.enrich(db, turn, seen, same=same)

    async def _name(
        self, db: aiosqlite.Connection, event: CaptureEvent, turn: str, call: traces.SameCall
    ) -> list[LabelChange]:
        """Under which names it is rated from now on."""
        raters = await traces.move(db, call.misplaced, turn)
        changes = [
            await ledger.regroup(db, id_, rater)
            for id_ in sorted({turn, *(one.turn for one in call.misplaced)})
            for rater in sorted(raters)
        ]
        if event.trace:
            await traces.insert(db, event, turn)
        if event.message_id:
            message = MessageRef(channel=event.channel, id=event.message_id)
            changes += await messages.attach(db, turn, [message])
        return [change for change in changes if change is not None]
