# SPDX-License-Identifier: Apache-2.0
"""The visible effect of a rating, and what its rater is told on the way to the next training."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import aiosqlite

from goodbot.access.direct_message import Courier
from goodbot.api.actions import run
from goodbot.api.events import Button, RatingEvent, RatingKind
from goodbot.api.labels import STARS, Opinion, is_stars
from goodbot.api.notice import Notice
from goodbot.api.sentences import Condition, Reason, because, waits, words
from goodbot.api.texts import say
from goodbot.conversation.notifications.counter import progress
from goodbot.conversation.notifications.due import Due, dues
from goodbot.learning.training.round_size import RoundSize
from goodbot.store import Store, feedback, ledger, news, settings
from goodbot.store.ledger import LabelChange

_OPEN = 1000
_MILESTONE = "progress "
_CONSENT = "consent "


class Effect(NamedTuple):
    """What somebody is told of a rating of theirs, and what they may press next."""

    reasons: tuple[Reason, ...]
    offer: tuple[Button, ...] = ()


class RoundCounter:
    """Counts the round up, with a private word at its first rating and at each quarter.

    Two things are told once: that the round has come to a milestone, to whoever's rating reached
    it, and that the last ratings of somebody were all bad, until a better one comes. A rating
    that is answered anyway (a press, a command) has it in its answer; a reaction is answered by
    nothing, so its rater gets a message.
    """

    def __init__(
        self, size: RoundSize, schedule: str = "auto", held: Callable[[], Condition | None] = lambda: None
    ) -> None:
        """`held`: what a training that has its ratings waits for."""
        self._size, self._pool = size, size.pool
        self._schedule, self._held = schedule, held
        self._told: set[str] = set()
        """Keys that the store is known to hold: most ratings need not ask."""
        self._due: dict[str, list[Due]] = {}

    async def effect(
        self,
        db: aiosqlite.Connection,
        event: RatingEvent,
        turn: str,
        person: str,
        change: LabelChange | None,
        *,
        undone: bool = False,
    ) -> Effect:
        """What a rating's receipt says. Part of the transaction that has folded the rating.

        `person` is the account that it came from, `connector:id`; `change` what it did to their
        label; `undone`: a version has learnt what that was before, and is replaced. What it says is
        what the label came to, not what was asked.
        """
        level = await self._level(db, person, turn)
        counted = self._progress(level)
        if not _became(event, change):
            stands = (await ledger.labels(db, turn)).get(level.rater)
            if not _done(event, change, stands):
                return Effect((_other(stands), counted))
            typed = event.kind in (RatingKind.COMMENT, RatingKind.BETTER)
            if typed and not await feedback.stands(db, event):
                return Effect((because("not_counted"), counted))
        uncounted = because("undone") if undone else _uncounted(event, level, person)
        said = (_said(event), counted, *([uncounted] if uncounted else []))
        if event.kind is not RatingKind.RATE:
            return Effect(said)
        if event.source.startswith("reaction"):
            await self._later(db, event, level, turn, person)
            return Effect(said)
        more, offer = await self._now(db, event, level, person)
        return Effect((*said, *more), offer)

    async def _now(
        self, db: aiosqlite.Connection, event: RatingEvent, level: news.Level, person: str
    ) -> tuple[list[Reason], tuple[Button, ...]]:
        """What a rater hears in the answer to their rating, and what they may press."""
        reasons: list[Reason] = []
        offer: tuple[Button, ...] = ()
        found = await self._news(db, level, counts=level.counts, liked=_likes(event))
        if level.waits_for == person and await settings.tell_once(db, f"{_CONSENT}{person}"):
            offer = share_row(event.user.language)
        for key, reason in found.items():
            if await settings.tell_once(db, key) and reason:
                reasons.append(reason)
        return reasons, offer

    async def _later(
        self, db: aiosqlite.Connection, event: RatingEvent, level: news.Level, turn: str, person: str
    ) -> None:
        """What a rater whom nothing answers is told by a message, after the commit."""
        liked = _likes(event)
        found = await self._unheard(db, level, person, turn, counts=level.counts, liked=liked)
        if found:
            language = event.user.language

            async def look(db: aiosqlite.Connection) -> list[Notice]:
                self._told.clear()  # while it was tried, it was known as told
                level = await self._level(db, person, turn)
                found = await self._unheard(db, level, person, turn, counts=level.counts, liked=liked)
                return self._notices(found, level, person, language)

            self._due[event.event_id] = dues(self._notices(found, level, person, language), look)
            if len(self._due) > _OPEN:  # of transactions that were rolled back for good
                del self._due[next(iter(self._due))]

    async def _unheard(
        self,
        db: aiosqlite.Connection,
        level: news.Level,
        person: str,
        turn: str = "",
        *,
        counts: bool,
        liked: bool = True,
    ) -> dict[str, Reason | None]:
        """What this person is to be told now, by key; `counts` and `liked` as in `_news`."""
        found = await self._news(db, level, counts=counts, liked=liked)
        key = f"{_CONSENT}{person}"
        if turn and level.waits_for and await self._is_new(db, key):
            found[key] = _waits(level, person)
        return found

    async def _level(self, db: aiosqlite.Connection, person: str, turn: str = "") -> news.Level:
        return await news.level(db, self._pool, person, await self._size.now(db), turn)

    def due(self, event: RatingEvent) -> list[Due]:
        """After the commit: what the rater of this reaction is to be told."""
        return self._due.pop(event.event_id, [])

    async def catch_up(self, store: Store, courier: Courier, language: str) -> None:
        """At start: tell what was due when the last process ended, in a language that all of them read."""
        people = await store.read(lambda db: news.raters(db, self._pool.scope))
        for number, (person, fresh) in enumerate(people):
            latest = number == 0 and fresh  # who has brought the round to where it is

            async def look(
                db: aiosqlite.Connection, person: str = person, counts: bool = latest
            ) -> list[Notice]:
                self._told.clear()
                level = await self._level(db, person)
                found = await self._unheard(db, level, person, counts=counts)
                return self._notices(found, level, person, language)

            for one in dues(await store.read(look), look):
                await courier.insist(*one)

    async def _news(
        self, db: aiosqlite.Connection, level: news.Level, *, counts: bool, liked: bool = True
    ) -> dict[str, Reason | None]:
        """What is not told yet, by key; `counts`: it is this rater who brought the round here, and `liked`
        the answer."""
        found: dict[str, Reason | None] = {}
        counted = min(level.needed, news.COUNTED)
        reached = [m for m in milestones(level.needed) if m <= level.available < counted]
        if counts and reached:
            key = f"{_MILESTONE}{self._pool.scope} {self._pool.model} {level.round} {reached[-1]}"
            if await self._is_new(db, key):
                found[key] = await self._milestone(db, level, reached[-1], liked=liked)
        if level.streak:
            key = f"streak {level.rater} {await news.streak_since(db, self._pool.scope, level.rater)}"
            if await self._is_new(db, key):
                found[key] = because("streak", count=news.STREAK)
        return found

    def _notices(
        self, found: dict[str, Reason | None], level: news.Level, person: str, language: str
    ) -> list[Notice]:
        """As messages, which nobody has asked for: they say what they are about."""
        counted = (because("counts"), self._progress(level))
        return [
            Notice(
                key=key,
                person=person,
                text=words(*(counted if key.startswith(_MILESTONE) else ()), reason, language=language),
                buttons=share_row(language) if key.startswith(_CONSENT) and level.waits_for == person else (),
            )
            for key, reason in found.items()
        ]

    def _progress(self, level: news.Level) -> Reason:
        more = level.available == news.COUNTED < level.needed
        held = self._held() or (waits("manual") if self._schedule == "manual" else None)
        return progress(level.available, level.needed, at_least=more, rests=level.rests, held=held)

    async def _is_new(self, db: aiosqlite.Connection, key: str) -> bool:
        if key not in self._told and await news.told(db, key):
            self._told.add(key)
        return key not in self._told

    async def _milestone(
        self, db: aiosqlite.Connection, level: news.Level, milestone: int, *, liked: bool
    ) -> Reason | None:
        """What there is to say beside the count."""
        if milestone == 1:
            return None if level.round or liked else because("advice")
        if milestone != milestones(level.needed)[-1] or level.rests:
            return None
        seconds = await news.last_seconds(db, self._pool.scope)
        more = level.needed - level.available
        return because("soon", more=more, schedule=self._schedule, seconds=seconds)


def share_row(language: str) -> tuple[Button, ...]:
    """Pressed by whoever speaks in private and rates what they hear."""
    return (run("share on", say("button_share", language)),)


def asks_to_share(person: str, language: str) -> Notice:
    """What is told once to somebody whose private ratings wait: under the same key as at a rating."""
    text = say("waits_for_you", language)
    return Notice(key=f"{_CONSENT}{person}", person=person, text=text, buttons=share_row(language))


def _likes(event: RatingEvent) -> bool:
    """Whether it is good: whoever has begun like that need not be told to."""
    return (event.value or 0.0) > 0


def _waits(level: news.Level, person: str) -> Reason:
    """Why a rating does not count yet."""
    return because("waits_for_you" if level.waits_for == person else "waits_for_another")


def _became(event: RatingEvent, change: LabelChange | None) -> bool:
    """Whether a thumb has made the label what it says: most do, and nothing need be looked up."""
    thumb = event.kind is RatingKind.RATE and not is_stars(event.source)
    return thumb and change is not None and change.after == event.value


def _done(event: RatingEvent, change: LabelChange | None, stands: Opinion | None) -> bool:
    """Whether the label is now what a rating or taking back was to make of it."""
    if event.kind is RatingKind.RETRACT:
        # With a source or an event it may leave what another one said.
        return stands is None or (change is not None and bool(event.source or event.retracts))
    said = stands if isinstance(stands, list) else [stands]
    if event.kind is RatingKind.OUTCOME:  # among several it counts as their mean
        return change is not None or event.value == said[0]
    return event.kind is not RatingKind.RATE or event.value == said[-1 if is_stars(event.source) else 0]


def _other(stands: Opinion | None) -> Reason:
    """What is told of a rating that changed nothing."""
    if stands is None:
        return because("not_counted")
    value = stands[0] if isinstance(stands, list) else stands
    return because(f"stands_{'good' if value > 0 else 'bad' if value < 0 else 'neither'}")


def _uncounted(event: RatingEvent, level: news.Level, person: str) -> Reason | None:
    """Why what is said of this answer adds nothing to the count."""
    if event.kind in (RatingKind.RETRACT, RatingKind.COMMENT, RatingKind.JUDGE):
        return None
    better = event.kind is RatingKind.BETTER
    if level.unused:  # pairs are made of what has trained, too
        return None if better and level.unused == "used" else because(level.unused)
    if level.waits_for:  # a message says so of a reaction, once
        return None if event.source.startswith("reaction") else _waits(level, person)
    if level.teaches or better:
        return None
    if is_stars(event.source) and not event.value:
        return because("neither")
    return because("tied" if level.raters > 1 else "not_yet")


def _said(event: RatingEvent) -> Reason:
    if event.kind is not RatingKind.RATE:
        return because(event.kind)
    value = event.value or 0.0
    if is_stars(event.source):
        return because("stars", stars=round(2 * value) + 3, of=STARS)
    return because("good" if value > 0 else "bad")


def milestones(needed: int) -> tuple[int, ...]:
    """The first rating of a round of `needed`, and each quarter of it: 1, 10, 20 and 30 of 40."""
    quarters = {-(-needed * quarter // 4) for quarter in (1, 2, 3)}
    return tuple(sorted(m for m in {1, *quarters} if m < needed))
