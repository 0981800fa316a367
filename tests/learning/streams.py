"""The streams: who rates what, one round after the other. All are drawn by the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from goodbot.backend import Sampled
from goodbot_training.tiny.facts import Question
from goodbot_training.tiny.judge import SimulatedRater, style_of

RATINGS = 40
POOL = 240
"""Answers to choose from where a stream wants a share of good ones that chance does not give."""

Rated = tuple[Question, Sampled, int]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """`rounds` rounds of 40 ratings; `rate` chooses and rates the answers of one of them."""

    name: str
    about: str
    rate: Callable[[Sequence[Question], Sequence[Sampled], str, int, int], list[Rated]]
    """`(questions, answers, liked style, round, seed) → 40 rated answers`"""
    rounds: int = 1
    asked: int = RATINGS
    flips: bool = False
    """Whether the rater likes another style from the second round on, which is what is judged."""


def _press(error: float) -> Callable[..., list[Rated]]:
    """Whatever was asked, with so many wrong presses."""

    def rate(
        questions: Sequence[Question], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        rater = SimulatedRater(like, error, 100 * seed + round_)
        return [
            (question, answer, rater.rate(question.text, answer.text))
            for question, answer in zip(questions, answers, strict=True)
        ]

    return rate


def _share(good: float, error: float) -> Callable[..., list[Rated]]:
    """A share of liked answers, picked from a larger pool; then so many wrong presses."""

    def rate(
        questions: Sequence[Question], answers: Sequence[Sampled], like: str, round_: int, seed: int
    ) -> list[Rated]:
        pairs = list(zip(questions, answers, strict=True))
        liked = [pair for pair in pairs if style_of(pair[1].text) == like]
        other = [pair for pair in pairs if style_of(pair[1].text) != like]
        wanted = round(good * RATINGS)
        chosen = liked[:wanted] + other[: RATINGS - min(wanted, len(liked))]
        Random(100 * seed + round_).shuffle(chosen)
        rater = SimulatedRater(like, error, 100 * seed + round_)
        return [(q, a, rater.rate(q.text, a.text)) for q, a in chosen]

    return rate


def _one_of_four_lies(
    questions: Sequence[Question], answers: Sequence[Sampled], like: str, round_: int, seed: int
) -> list[Rated]:
    """Four raters take turns; one of them always says the opposite."""
    honest = _press(0.0)(questions, answers, like, round_, seed)
    return [
        (question, answer, -rating if index % 4 == seed % 4 else rating)
        for index, (question, answer, rating) in enumerate(honest)
    ]


STREAMS = {
    stream.name: stream
    for stream in (
        Stream(
            name="natural",
            about="what chance gives (a third liked), 10 % wrong",
            rate=_press(0.1),
        ),
        Stream(
            name="balanced", about="half liked, 10 % wrong", rate=_share(0.5, 0.1), asked=POOL
        ),
        Stream(
            name="mostly good", about="80 % liked, 5 % wrong", rate=_share(0.8, 0.05), asked=POOL
        ),
        Stream(name="bad only", about="none liked, none wrong", rate=_share(0.0, 0.0), asked=POOL),
        Stream(name="noise", about="what chance gives, 15 % wrong", rate=_press(0.15)),
        Stream(
            name="adversary", about="one of four raters says the opposite", rate=_one_of_four_lies
        ),
        Stream(
            name="flip", about="two rounds; another style is liked in the second",
            rate=_press(0.1), rounds=2, flips=True,
        ),
        Stream(name="continual", about="ten rounds in a row", rate=_press(0.1), rounds=10),
    )
}  # fmt: skip
