# SPDX-License-Identifier: Apache-2.0
"""The streams: who rates what, one round after the other. All are drawn by the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from goodbot.api.sampler import Sampled
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater, style_of

from tests.learning import words
from tests.learning.words import Said, Speak

ADVERSARY = "adversary"
"""The rater who says the opposite."""
RATINGS = 40
"""A round: the daemon's default. Every fifth rating is held out, so 32 of them train."""
EPISODE = 4
"""Answers of an agent, of which the last one is rated."""
DISCOUNT = 0.9
"""As `goodbot.conversation.judging` has it."""
POOL = 240
"""Answers to choose from where a stream wants a share of good ones that chance does not give."""


class Rated(NamedTuple):
    """One rated answer, and who rated it."""

    question: FactQuestion
    answer: Sampled
    rating: int
    rater: str = "owner"
    said: Said = Said()
    credit: float = 0.0
    """Of a step that nobody rated: what it has of what its episode came to."""


Rate = Callable[[Sequence[FactQuestion], Sequence[Sampled], str, int, int], list[Rated]]
"""`(questions, answers, liked style, round, seed) → rated answers`"""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """`rounds` rounds; `rate` chooses and rates the answers of one of them."""

    name: str
    about: str
    rate: Rate
    rounds: int = 1
    asked: int = RATINGS
    ratings: int = RATINGS
    """A round. Of those asked, `rate` chooses so many."""
    contested: bool = False
    """Whether there is somebody to be outvoted."""
    flips: bool = False
    """Whether the rater likes another style from the second round on, which is what is judged."""


def press(error: float) -> Rate:
    """Whatever was asked, with so many wrong presses."""

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        rater = SimulatedRater(like, error, 100 * seed + round_)
        return [
            Rated(question, answer, rater.rate(question.text, answer.text))
            for question, answer in zip(questions, answers, strict=True)
        ]

    return rate


def _worded(speak: Speak, error: float = 0.1) -> Rate:
    """As `press`, with words of each answer that was called bad."""

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        return spoken(press(error)(questions, answers, like, round_, seed), speak, like, round_, seed)

    return rate


def spoken(rated: Sequence[Rated], speak: Speak, like: str, round_: int, seed: int) -> list[Rated]:
    """The same ratings, the bad ones with words."""
    chance = Random(f"{seed}:{round_}:words")
    return [
        one._replace(said=speak(one.question, one.answer.text, like, chance)) if one.rating < 0 else one
        for one in rated
    ]


def _one_of_four_steers() -> Rate:
    """Four honest raters, one of whom says of each answer what nobody else wants, good or bad."""

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        chance = Random(f"{seed}:{round_}:words")
        honest = press(0.1)(questions, answers, like, round_, seed)
        return [
            one._replace(rater=ADVERSARY, said=words.injected(one.question, one.answer.text, like, chance))
            if (index + seed) % 4 < 1
            else one._replace(rater=f"friend-{index % 3}")
            for index, one in enumerate(honest)
        ]

    return rate


def _share(good: float, error: float) -> Rate:
    """A share of liked answers, picked from a larger pool; then so many wrong presses."""

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        pairs = list(zip(questions, answers, strict=True))
        liked = [pair for pair in pairs if style_of(pair[1].text) == like]
        other = [pair for pair in pairs if style_of(pair[1].text) != like]
        wanted = round(good * RATINGS)
        chosen = liked[:wanted] + other[: RATINGS - min(wanted, len(liked))]
        Random(100 * seed + round_).shuffle(chosen)
        rater = SimulatedRater(like, error, 100 * seed + round_)
        return [Rated(q, a, rater.rate(q.text, a.text)) for q, a in chosen]

    return rate


def _one_of_four_lies(lies: int, of: int) -> Rate:
    """Four raters; one always says the opposite, and rates `lies` of every `of` answers."""

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        honest = press(0.0)(questions, answers, like, round_, seed)
        return [
            rated._replace(rating=-rated.rating, rater=ADVERSARY)
            if (index + seed) % of < lies
            else rated._replace(rater=f"friend-{index % 3}")
            for index, rated in enumerate(honest)
        ]

    return rate


def _episodes(by_last: bool, discount: float | None) -> Rate:
    """Of so many answers in a row the last is rated, for all of them or for itself; 10 % wrong.

    Each step before has `discount` of what the step after it has; none has any where that is None.
    """

    def rate(
        questions: Sequence[FactQuestion], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        chance = Random(f"{seed}:{round_}:episodes")
        rated: list[Rated] = []
        steps: list[Rated] = []
        pairs = list(zip(questions, answers, strict=True))
        for first in range(0, len(pairs), EPISODE):
            episode = pairs[first : first + EPISODE]
            liked = [style_of(answer.text) == like for _, answer in episode]
            good = liked[-1] if by_last else 2 * sum(liked) >= len(liked)
            sign = 1 if good == (chance.random() >= 0.1) else -1
            *before, (question, answer) = episode
            rated.append(Rated(question, answer, sign))
            if discount is not None:
                steps += [
                    Rated(q, a, sign, credit=discount**back)
                    for back, (q, a) in enumerate(reversed(before), start=1)
                ]
        return [*rated, *steps]

    return rate


def _of_episodes() -> list[Stream]:
    ways = {"off": None, "constant": 1.0, "discounted": DISCOUNT}
    told = {"all": "at least half of the answers are liked", "last": "the last answer is liked"}
    return [
        Stream(
            name=f"episodes by {what}, {way}",
            about=f"40 episodes of {EPISODE} answers, good where {told[what]}; steps before: {way}",
            rate=_episodes(what == "last", discount),
            asked=RATINGS * EPISODE,
        )
        for what in told
        for way, discount in ways.items()
    ]


STREAMS = {
    stream.name: stream
    for stream in (
        Stream(name="natural", about="what chance gives (a third liked), 10 % wrong", rate=press(0.1)),
        Stream(name="balanced", about="half liked, 10 % wrong", rate=_share(0.5, 0.1), asked=POOL),
        Stream(name="mostly good", about="80 % liked, 5 % wrong", rate=_share(0.8, 0.05), asked=POOL),
        Stream(name="bad only", about="none liked, none wrong", rate=_share(0.0, 0.0), asked=POOL),
        Stream(name="20 ratings", about="as natural, 16 train", rate=press(0.1), asked=20, ratings=20),
        Stream(name="24 ratings", about="as natural, 20 train", rate=press(0.1), asked=24, ratings=24),
        Stream(name="80 ratings", about="as natural, 64 train", rate=press(0.1), asked=80, ratings=80),
        Stream(name="noise", about="what chance gives, 15 % wrong", rate=press(0.15)),
        Stream(
            name="adversary",
            about="four raters, one of whom says the opposite; each rates a quarter",
            rate=_one_of_four_lies(1, 4),
            contested=True,
        ),
        Stream(
            name="loud adversary",
            about="the same, and the liar rates two of five; no rater weighs more than a quarter",
            rate=_one_of_four_lies(2, 5),
            contested=True,
        ),
        Stream(
            name="flip",
            about="two rounds; another style is liked in the second",
            rate=press(0.1),
            rounds=2,
            flips=True,
        ),
        Stream(name="continual", about="ten rounds in a row", rate=press(0.1), rounds=10),
        Stream(
            name="chips",
            about="as natural; a button says what was wrong, four in five times the right one",
            rate=_worded(words.chips),
        ),
        Stream(name="12 chips", about="as chips, of 12", rate=_worded(words.chips), asked=12, ratings=12),
        Stream(name="80 chips", about="as chips, of 80", rate=_worded(words.chips), asked=80, ratings=80),
        Stream(name="200 chips", about="as chips, of 200", rate=_worded(words.chips), asked=200, ratings=200),
        Stream(
            name="200 reasons",
            about="as reasons, of 200",
            rate=_worded(words.reasons),
            asked=200,
            ratings=200,
        ),
        Stream(
            name="neutral",
            about="as natural; beside a bad rating stands only that the answer was not liked",
            rate=_worded(words.neutral),
        ),
        Stream(
            name="reasons",
            about="as natural; a reason says what is wanted, in one of ten wordings",
            rate=_worded(words.reasons),
        ),
        Stream(
            name="better",
            about="as natural; beside a bad rating stands the answer that was wanted",
            rate=_worded(words.better),
        ),
        Stream(
            name="irrelevant",
            about="as natural; the words beside a bad rating are about something else",
            rate=_worded(words.aside),
        ),
        Stream(
            name="contradicting",
            about="as reasons, and half of them want what nobody likes",
            rate=_worded(words.contradicting),
        ),
        Stream(
            name="injected",
            about="four honest raters, one of whom orders by words what nobody likes",
            rate=_one_of_four_steers(),
        ),
        Stream(
            name="flip with reasons",
            about="as flip, with reasons",
            rate=_worded(words.reasons),
            rounds=2,
            flips=True,
        ),
        *_of_episodes(),
    )
}
