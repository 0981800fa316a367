# SPDX-License-Identifier: Apache-2.0
"""The pipeline: ignore bots → dedupe → pair → authorize → message | rating | press | command | capture.

`submit` has it decided (`intake`) and stored; nothing slow happens in it. What an event sets off (an answer,
a command) runs after the commit, from the inbox, so that a crash in between loses nothing. What a
command rates is stored with it (`at_once`), as a press is: nothing that comes later stands before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import aiosqlite

from goodbot.access.authorization import Authorization, person
from goodbot.access.limits import Undo
from goodbot.access.readers import Readers
from goodbot.api.events import CaptureEvent, Event, Outcome, PressEvent, RatingEvent, RatingKind, Receipt
from goodbot.api.plugins import PluginHost
from goodbot.base.clock import Clock
from goodbot.base.errors import StoreError
from goodbot.conversation import one_commit, sanitize
from goodbot.conversation.captures import Captured
from goodbot.conversation.follow_ups import FollowUps, FollowUpTasks, Work
from goodbot.conversation.intake import EventIntake
from goodbot.learning.training import unavailability
from goodbot.store import Store, inbox

logger = logging.getLogger(__name__)

_STALE_SECONDS = 600.0
"""A question that waited longer for a restart, the model's absences aside, is not answered any more."""


class Dispatcher:
    """Takes events in, and sees that what follows from them is done."""

    def __init__(
        self,
        *,
        store: Store,
        authorization: Authorization,
        plugins: PluginHost,
        clock: Clock,
        readers: Readers,
        intake: EventIntake,
        follow_ups: FollowUps,
        tasks: FollowUpTasks,
    ) -> None:
        self._store, self._authorization, self._plugins, self._clock = store, authorization, plugins, clock
        self._readers, self._intake, self._under_way = readers, intake, intake.under_way
        self._then, self._tasks, self._spawn = follow_ups, tasks, tasks.spawn
        self._commands: asyncio.Queue[Event] = asyncio.Queue()
        self._rated: asyncio.Queue[Event] = asyncio.Queue()
        """Commands that rate: each is stored already, and is told without waiting for what others ask."""
        self._closed = False
        self._late: list[Event] = []

    async def submit(
        self, events: Sequence[Event], connector: str, cursor: str | None = None, *, anywhere: bool = False
    ) -> tuple[Receipt, ...]:
        """Take events in; returns after one commit of all of them and the cursor.

        `anywhere`: its people may rate what they see of other connectors, too (INBOX).
        Raises StoreError when nothing was stored.
        """
        self._readers.heard(events)
        events = [sanitize.read_by(event, self._readers.default) for event in events]
        refused = [sanitize.refused(event) for event in events]
        changed = {sanitize.place(event) for event in events if sanitize.is_rating(event, RatingKind.RATE)}
        searches = any(map(sanitize.is_rating_command, events))  # the answer that is meant
        captured: list[Captured] = []
        counted: list[Undo] = []

        async def operation(db: aiosqlite.Connection) -> list[Receipt]:
            receipts, captured[:] = await self._intake.each(
                db, events, refused, changed, counted, anywhere=anywhere
            )
            if cursor is not None:
                await inbox.set_cursor(db, connector, cursor)
            return receipts

        async def store_and_follow_up() -> tuple[Receipt, ...]:
            await self._intake.ready(events, refused)
            receipts = await one_commit.stored(self._store, operation, counted, quick=not searches)
            if any(receipt.outcome is Outcome.PAIRED for receipt in receipts):
                await self._authorization.refresh(self._store)
            self._follow_all(events, receipts, captured)
            return tuple(receipts)

        if self._closed:
            raise StoreError("goodbot is stopping: nothing was stored")
        # A caller that is cancelled (its HTTP client has hung up, say) leaves a commit behind
        # that a replay finds: what follows from it must happen all the same.
        task = asyncio.create_task(store_and_follow_up(), name="submit")
        self._tasks.hold(task)
        return await asyncio.shield(task)

    def _follow_all(
        self, events: Sequence[Event], receipts: Sequence[Receipt], captured: Sequence[Captured]
    ) -> None:
        for event, receipt in zip(events, receipts, strict=True):
            if not (receipt.duplicate or receipt.outcome is Outcome.CONFLICT):
                self._follow_up(event, receipt)
        for one in captured:
            self._follow_capture(one)

    def _follow_capture(self, captured: Captured) -> None:
        if captured.changes:
            self._then.rated()
        if captured.turn is not None and self._plugins.observed("on_turn"):
            self._spawn(self._plugins.on_turn(captured.turn), "on_turn")

    def _follow_up(self, event: Event, receipt: Receipt) -> None:
        if isinstance(event, CaptureEvent):
            return
        if isinstance(event, RatingEvent):
            if receipt.outcome is Outcome.ACCEPTED:
                self._then.rated()
                if self._plugins.observed("on_rating"):
                    self._spawn(self._plugins.on_rating(event, receipt), "on_rating")
            if receipt.outcome is Outcome.UNKNOWN_TARGET and event.message_id:
                self._spawn(self._then.answer(event), "copy")
            self._spawn(self._then.acknowledge(event, receipt), "acknowledge")
            for notice, still in self._intake.progress.due(event):
                self._spawn(self._then.tell(notice, still), "tell")
        elif receipt.outcome is Outcome.ACCEPTED:
            work = sanitize.to_do(event, receipt)
            if isinstance(work, PressEvent):  # the platform waits, the answer takes its time
                self._spawn(self._then.acknowledge(event, receipt), "acknowledge")
            self._start(work)
        elif receipt.text or isinstance(event, PressEvent):
            self._told(event, receipt)

    def _told(self, event: Event, receipt: Receipt) -> None:
        """Nothing is left to do but to say so."""
        if receipt.outcome is Outcome.PAIRED:
            logger.info("paired: you are its owner (%s)", person(event.user))
        if receipt.outcome is Outcome.DENIED:
            self._spawn(self._then.ask(event, receipt), "join request")
        self._spawn(self._then.acknowledge(event, receipt), "acknowledge")

    def _start(self, event: Event) -> None:
        if sanitize.is_command(event):
            rated = sanitize.is_rating_command(event)
            (self._rated if rated else self._commands).put_nowait(event)
        else:
            self._then.talked()
            self._spawn(self._under_way.until_done(event, self._then.answer(event)), "answer")

    async def loop(self, command: Work) -> None:
        """Have each `command` done after the one before, in the order in which they came.

        What rates is told beside the others: a report of an owner's holds up nobody who teaches.
        """
        async with asyncio.TaskGroup() as both:
            both.create_task(self._each(self._commands, command))
            both.create_task(self._each(self._rated, command))

    async def _each(self, commands: asyncio.Queue[Event], command: Work) -> None:
        while True:
            event = await commands.get()
            try:
                await command(event)
            except Exception:
                logger.exception("a command failed")
            finally:
                self._under_way.ends(event)
                commands.task_done()

    async def unfinished(self) -> list[Event]:
        """What was accepted but not done when the last process ended; old questions are let go.

        Under an old press half of another answer may stand: `resume` has the earlier one put back.
        To be asked before the connectors start: what comes in later is not to be done twice.
        """
        result: list[Event] = []
        now, away = self._clock.now(), await self._store.read(unavailability.read)
        for event, received_at in await self._store.read(inbox.unfinished):
            stale = away.waited(received_at, now) > _STALE_SECONDS
            if stale and not sanitize.is_command(event):
                if not isinstance(event, PressEvent):
                    await self._store.write(lambda db, e=event: inbox.close(db, e))
                    continue
                self._late.append(event)
            result.append(event)
        return result

    def resume(self, events: Sequence[Event]) -> None:
        """At start: go on with what `unfinished` has found; not any more once it ends."""
        for event in () if self._closed else events:
            if event in self._late:
                self._spawn(self._then.put_back(event), "answer")
            else:
                self._under_way.begins(event)
                self._start(event)

    async def drain(self, seconds: float) -> None:
        """At stop: take nothing more in, give answers under way a moment, then cancel them.

        The inbox keeps what was cancelled.
        """
        self._closed = True
        await self._tasks.end(seconds)
