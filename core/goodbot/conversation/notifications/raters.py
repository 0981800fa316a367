"""The visible effect of a rating, and what its rater is told on the way to the next training."""

from __future__ import annotations

from typing import NamedTuple

import aiosqlite

from goodbot.access.direct_message import Courier
from goodbot.api.actions import run
from goodbot.api.events import Button, RatingEvent, RatingKind
from goodbot.api.labels import STARS, Opinion, is_stars
from goodbot.api.notice import Notice
from goodbot.store import Store, ledger, news, settings
from goodbot.store.ledger import LabelChange
from goodbot.store.training_pool import Pool

_OPEN = 1000
_COUNTED = 1000
"""A rating counts what waits up to here: it costs the same however much does."""
_ADVICE = "Rate good answers too: a bot that hears only “bad” does not learn what you like."
_STREAK = (
    f"Your last {news.STREAK} ratings were all “bad”. Rate good answers too: from “bad” alone "
    "I learn what you dislike, not what you like."
)
_NEITHER = "Three stars alone lean to neither side: they teach nothing."
_ALONE = "Alone it teaches nothing: so the rewards are set that I learn by."
_TIED = "Together with what others say of this answer it teaches nothing."
_MILESTONE = "progress "
_CONSENT = "consent "
SHARE = (run("share on", "Share my private chats"),)
"""Pressed by whoever speaks in private and rates what they hear."""
_SAID = {
    RatingKind.RETRACT: "Taken back.",
    RatingKind.COMMENT: "Your reason is kept.",
    RatingKind.BETTER: "Your better answer is kept.",
}


class Effect(NamedTuple):
    """What somebody is told of a rating of theirs, and what they may press next."""

    text: str
    offer: tuple[Button, ...] = ()


class RoundCounter:
    """Counts the round up, with a private word at its first rating and at each quarter.

    Two things are told once: that the round has come to a milestone, to whoever's rating reached
    it, and that the last ratings of somebody were all bad, until a better one comes. A rating
    that is answered anyway (a press, a command) has it in its answer; a reaction is answered by
    nothing, so its rater gets a message.
    """

    def __init__(self, pool: Pool, min_ratings: int, schedule: str = "auto") -> None:
        self._pool = pool
        self._needed = min_ratings
        self._counted = min(min_ratings, _COUNTED)
        self._schedule = schedule
        self._milestones = milestones(min_ratings)
        self._told: set[str] = set()
        """Keys that the store is known to hold: most ratings need not ask."""
        self._due: dict[str, list[Notice]] = {}

    async def effect(
        self, db: aiosqlite.Connection, event: RatingEvent, turn: str, person: str, change: LabelChange | None
    ) -> Effect:
        """What a rating's receipt says. Part of the transaction that has folded the rating.

        `person` is the account that it came from, `connector:id`; `change` what it did to their
        label. What it says is what the label came to, not what was asked.
        """
        level = await news.level(db, self._pool, person, self._counted, turn)
        counted = self._progress(level)
        if not _became(event, change):
            stands = (await ledger.labels(db, turn)).get(level.rater)
            if not _done(event, change, stands):
                return Effect(f"{_other(stands)} {counted}")
        if event.kind is not RatingKind.RATE:
            return Effect(f"{_SAID.get(event.kind, 'Kept.')} {counted}")
        said = f"{_said(event)}. {counted}"
        if not level.alone:
            said += f" {_ALONE if event.value else _NEITHER}"
        elif not level.teaches:
            said += f" {_TIED}"
        if event.source.startswith("reaction"):
            await self._later(db, event, level, person)
            return Effect(said)
        more, offer = await self._now(db, level, person)
        return Effect(" ".join([said, *more]), offer)

    async def _now(
        self, db: aiosqlite.Connection, level: news.Level, person: str
    ) -> tuple[list[str], tuple[Button, ...]]:
        """What a rater hears in the answer to their rating, and what they may press."""
        sentences: list[str] = []
        offer: tuple[Button, ...] = ()
        words = await self._words(db, level)
        if level.waits_for:
            sentences.append(_waits(level, person))
            if level.waits_for == person and await settings.tell_once(db, f"{_CONSENT}{person}"):
                offer = SHARE
        for key, sentence in words.items():
            if await settings.tell_once(db, key) and sentence:
                sentences.append(sentence)
        return sentences, offer

    async def _later(
        self, db: aiosqlite.Connection, event: RatingEvent, level: news.Level, person: str
    ) -> None:
        """What a rater whom nothing answers is told by a message, after the commit."""
        words = await self._words(db, level)
        key = f"{_CONSENT}{person}"
        if level.waits_for and await self._is_new(db, key):
            words[key] = _waits(level, person)
        if words:
            self._due[event.event_id] = self._notices(words, level, person)
            if len(self._due) > _OPEN:  # of transactions that were rolled back for good
                del self._due[next(iter(self._due))]

    def due(self, event: RatingEvent) -> list[Notice]:
        """After the commit: what the rater of this reaction is to be told."""
        return self._due.pop(event.event_id, [])

    async def catch_up(self, store: Store, courier: Courier) -> None:
        """At start: tell what was due when the last process ended."""
        people = await store.read(lambda db: news.raters(db, self._pool.scope))
        for number, (person, fresh) in enumerate(people):
            latest = number == 0 and fresh  # who has brought the round to where it is

            async def look(
                db: aiosqlite.Connection, person: str = person, counts: bool = latest
            ) -> list[Notice]:
                level = await news.level(db, self._pool, person, self._counted)
                words = await self._words(db, level, counts=counts)
                return self._notices(words, level, person)

            for notice in await store.read(look):
                await courier.tell(notice)

    async def _words(
        self, db: aiosqlite.Connection, level: news.Level, *, counts: bool = True
    ) -> dict[str, str]:
        """What is not told yet, by key; `counts`: it is this rater who brought the round here."""
        found: dict[str, str] = {}
        reached = [m for m in self._milestones if m <= level.available < self._counted]
        if counts and reached:
            key = f"{_MILESTONE}{self._pool.scope} {self._pool.model} {level.round} {reached[-1]}"
            if await self._is_new(db, key):
                found[key] = await self._milestone(db, level, reached[-1])
        if level.streak:
            key = f"streak {level.rater} {await news.streak_since(db, level.rater)}"
            if await self._is_new(db, key):
                found[key] = _STREAK
        return found

    def _notices(self, words: dict[str, str], level: news.Level, person: str) -> list[Notice]:
        """As messages, which nobody has asked for: they say what they are about."""
        counted = f"Your rating counts: {self._progress(level)}"
        return [
            Notice(
                key=key,
                person=person,
                text=f"{counted} {sentence}".strip() if key.startswith(_MILESTONE) else sentence,
                buttons=SHARE if key.startswith(_CONSENT) and level.waits_for == person else (),
            )
            for key, sentence in words.items()
        ]

    def _progress(self, level: news.Level) -> str:
        more = level.available == self._counted < self._needed
        return progress(level.available, self._needed, at_least=more, rests=level.rests)

    async def _is_new(self, db: aiosqlite.Connection, key: str) -> bool:
        if key not in self._told and await news.told(db, key):
            self._told.add(key)
        return key not in self._told

    async def _milestone(self, db: aiosqlite.Connection, level: news.Level, milestone: int) -> str:
        """What there is to say beside the count."""
        if milestone == 1:
            return "" if level.round else _ADVICE
        if milestone != self._milestones[-1] or level.rests:
            return ""
        seconds = await news.last_seconds(db, self._pool.scope)
        takes = f"; that takes {duration(seconds)} here" if seconds else ""
        return f"{self._needed - level.available} more and {self._training()}{takes}."

    def _training(self) -> str:
        match self._schedule:
            case "auto":
                return "I train"
            case "manual":
                return "my owner can train me"
            case time:
                return f"I train at {time}"


def _waits(level: news.Level, person: str) -> str:
    """Why a rating does not count yet."""
    if level.waits_for == person:
        return (
            "Ratings of your private chats wait: what they teach, others hear. `/rl share on` lets "
            "them count."
        )
    return "This one waits until whoever asked says `/rl share on`: it was said in private."


def _became(event: RatingEvent, change: LabelChange | None) -> bool:
    """Whether a thumb has made the label what it says: most do, and nothing need be looked up."""
    thumb = event.kind is RatingKind.RATE and not is_stars(event.source)
    return thumb and change is not None and change.after == event.value


def _done(event: RatingEvent, change: LabelChange | None, stands: Opinion | None) -> bool:
    """Whether the label is now what a rating or taking back was to make of it."""
    if event.kind is RatingKind.RETRACT:
        # With a source or an event it may leave what another one said.
        return stands is None or (change is not None and bool(event.source or event.retracts))
    if event.kind is not RatingKind.RATE:
        return True
    said = stands if isinstance(stands, list) else [stands]
    return event.value == said[-1 if is_stars(event.source) else 0]


def _other(stands: Opinion | None) -> str:
    """What is told of a rating that changed nothing."""
    if stands is None:
        return "That does not count: it was taken back, or an owner has left out its time."
    value = stands[0] if isinstance(stands, list) else stands
    word = "good" if value > 0 else "bad" if value < 0 else "neither good nor bad"
    return f"That changes nothing: another rating of yours counts, “{word}”."


def _said(event: RatingEvent) -> str:
    value = event.value or 0.0
    if is_stars(event.source):
        return f"{round(2 * value) + 3} of {STARS} stars"
    return "Good" if value > 0 else "Bad"


def progress(available: int, needed: int, *, at_least: bool = False, rests: bool = False) -> str:
    """How far the next training is, in one sentence; with `at_least` there may be more available."""
    if at_least:
        return f"{available} or more of {needed} for the next training."
    if available < needed:
        return f"{available} of {needed} until the next training."
    once = " once an owner says `/rl resume`" if rests else ""
    return f"{needed} of {needed}: the next training can start{once}."


def milestones(needed: int) -> tuple[int, ...]:
    """The first rating of a round of `needed`, and each quarter of it: 1, 10, 20 and 30 of 40."""
    quarters = {-(-needed * quarter // 4) for quarter in (1, 2, 3)}
    return tuple(sorted(m for m in {1, *quarters} if m < needed))


def duration(seconds: float) -> str:
    """How long something takes, as one says it."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    return f"about {round(seconds / 60)} minutes"
