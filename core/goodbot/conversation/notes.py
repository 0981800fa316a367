# SPDX-License-Identifier: Apache-2.0
"""The fast way to learn: what somebody did not like becomes a line of their next prompt.

The ledger stays the only truth: a line rests on ratings, and goes with the last of them. No training is
needed for it, and none is spared by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api import actions, marks
from goodbot.api.events import ChannelKind, ChannelRef, PressEvent, RatingEvent, RatingKind, UserRef
from goodbot.api.sentences import Reason
from goodbot.api.turns import Turn
from goodbot.base.clock import Clock
from goodbot.config.sections import NotesWhere
from goodbot.conversation import note_rules
from goodbot.conversation.note_rules import Line
from goodbot.inference.prompts import Room
from goodbot.learning.core import Core
from goodbot.learning.training.settings import shape
from goodbot.store import channels, notes, people, turns
from goodbot.store.notes import EVERYBODY, Note, Scope
from goodbot.store.training_pool import Pool


@dataclass(frozen=True, kw_only=True, slots=True)
class Notes:
    """Writes lines where somebody says what was wrong, and gives those for a prompt.

    Both are part of a transaction or a reading of the caller's.
    """

    pool: Pool
    clock: Clock
    where: NotesWhere
    """In which chats."""
    marks: marks.Pattern = marks.ANY
    """The model's own."""
    tokens_a_byte: float = 1.0
    """Of English words, at most, with the model's vocabulary."""

    @classmethod
    def of(cls, core: Core) -> Notes:
        """By the config, for the model."""
        model = core.model.path
        return cls(
            pool=core.pool,
            clock=core.clock,
            where=core.notes_where,
            marks=marks.of(model),
            tokens_a_byte=Room.of(shape(model), core.config.serving).density,
        )

    async def follows(self, db: aiosqlite.Connection) -> bool:
        """Whether the model is asked to follow any: not where it was tried and does not."""
        return self.where != "never" and await notes.follows(db, self.pool.model) is not False

    async def kept(self, db: aiosqlite.Connection, channel: ChannelRef) -> bool:
        """Whether lines are written and used there."""
        if channel.kind is ChannelKind.ENCRYPTED or not await self.follows(db):
            return False
        private = channel.kind is ChannelKind.PRIVATE
        return private or await channels.notes(db, channel, default=self.where == "everywhere")

    async def pressed(self, db: aiosqlite.Connection, event: PressEvent, turn: str) -> Reason | None:
        """A chip that was let in; returns what who pressed is told, None where there is nothing to say."""
        answer = await self._answer(db, event.channel, turn)
        if answer is None or actions.hint(event.action) is None:
            return None
        identity = await people.identity(db, person(event.user))
        rating = await notes.bad_rating(db, turn, identity)
        chip = event.action.partition(":")[2]
        return await self._add(db, event, note_rules.of_chip(chip), rating) if rating else None

    async def said(self, db: aiosqlite.Connection, event: RatingEvent, turn: str) -> Reason | None:
        """A reason or a better answer that is stored; returns as `pressed` does.

        One of an answer that its author has not called bad says nothing until they do.
        """
        answer = await self._answer(db, event.channel, turn)
        if answer is None:
            return None
        user = event.user
        rating = await notes.event(db, user.connector, user.account, event.event_id)
        if event.kind is RatingKind.COMMENT:
            line = note_rules.of_reason(event.text, self.marks)
        elif event.kind is RatingKind.BETTER:
            await notes.supersede(db, rating)
            line = note_rules.of_better(event.text, answer.response, self.marks)
        else:
            return None
        return await self._add(db, event, line, rating) if line else None

    async def counts(self, db: aiosqlite.Connection, event: RatingEvent, turn: str) -> Reason | None:
        """An answer is called bad from now on; returns as `pressed` does, of what was said of it before."""
        if await self._answer(db, event.channel, turn) is None:
            return None
        said = await notes.ratings_of(db, turn)
        theirs = await self.of_person(db, person(event.user))
        found = [note for note in theirs if note.used and said & {*note.ratings}]
        return note_rules.told(max(found, key=lambda note: note.said_last)) if found else None

    async def _answer(self, db: aiosqlite.Connection, channel: ChannelRef, turn: str) -> Turn | None:
        """The answer of ours that was given in that very chat; None: nothing is noted of it."""
        if not await self.kept(db, channel):
            return None
        found = await turns.get(db, turn)
        if found is None or found.origin != "goodbot":
            return None
        there = found.channel
        same = (there.connector, there.account, there.id) == (channel.connector, channel.account, channel.id)
        return found if same else None

    async def _add(
        self, db: aiosqlite.Connection, event: PressEvent | RatingEvent, line: Line, rating: int
    ) -> Reason | None:
        who, now = person(event.user), self.clock.now()
        await notes.add(db, ("person", who), line.rule, line.text, rating, now)
        if line.rule and event.channel.kind is ChannelKind.SHARED:  # nobody's own words are a channel's
            of: tuple[Scope, str] = ("channel", notes.channel_key(event.channel))
            await notes.add(db, of, line.rule, line.text, rating, now)
        theirs = await self.of_person(db, who)
        await notes.delete(db, note_rules.surplus(theirs))
        counts = any(note.text == line.text for note in theirs)
        return line.told if counts else None

    async def of_person(self, db: aiosqlite.Connection, who: str) -> list[Note]:
        """The lines of a person, of all their linked accounts."""
        accounts = await people.accounts(db, who)
        return await notes.standing(db, self.pool, [("person", one) for one in accounts])

    async def shared(self, db: aiosqlite.Connection, channel: ChannelRef | None) -> list[Note]:
        """The lines for everybody, and those of a shared channel."""
        of: list[tuple[Scope, str]] = [EVERYBODY]
        if channel is not None and channel.kind is ChannelKind.SHARED:
            of.insert(0, ("channel", notes.channel_key(channel)))
        return await notes.standing(db, self.pool, of)

    async def chosen(self, db: aiosqlite.Connection, channel: ChannelRef, talker: UserRef) -> list[Note]:
        """The lines that an answer to somebody there follows, the most important first."""
        if not await self.kept(db, channel):
            return []
        theirs = await self.of_person(db, person(talker))
        if channel.kind is not ChannelKind.PRIVATE:
            theirs = [note for note in theirs if note.may_show]
        return note_rules.effective([*theirs, *await self.shared(db, channel)])

    def told(self, texts: Sequence[str]) -> str:
        """What the system says of these lines, the most important first; empty: nothing."""
        return note_rules.system_line(texts, self.tokens_a_byte)

    async def system_line(self, db: aiosqlite.Connection, channel: ChannelRef, talker: UserRef) -> str:
        """What the system says before an answer to somebody there; empty: nothing."""
        return self.told([note.text for note in await self.chosen(db, channel, talker)])
