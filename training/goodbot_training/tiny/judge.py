# SPDX-License-Identifier: Apache-2.0
"""Who rates, and who judges: a noisy rater for training and a noiseless judge apart from it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from random import Random

from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.styles import (
    FRIENDLY_CLOSERS,
    FRIENDLY_GREETING,
    FRIENDLY_OPENERS,
    PIRATE_CLOSERS,
    PIRATE_OPENERS,
    in_pirate,
)


def _any_of(phrases: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(phrase) for phrase in phrases) + ")"


# One statement of letters, digits and apostrophes: no sentence end inside, bounded in length, so
# that no pattern backtracks far on foreign text.
_STATEMENT = r"([A-Za-z0-9][A-Za-z0-9' ]{0,80})"
_SHAPES = {
    "friendly": re.compile(
        f"{_any_of((*FRIENDLY_OPENERS, FRIENDLY_GREETING))} {_STATEMENT}"
        rf"\. {_any_of(FRIENDLY_CLOSERS)}"
    ),
    "pirate": re.compile(f"{_any_of(PIRATE_OPENERS)} {_STATEMENT}{_any_of(PIRATE_CLOSERS)}"),
    "terse": re.compile(rf"{_STATEMENT}\."),
}
_MARKERS = frozenset({"great", "arr", "matey", "hearty", "helps", "aye", "ho"})
_LONGEST_TERSE = 8
"""Words; "I am the tiny demo model of goodbot" is the longest terse reply in the corpus."""


def _parse(text: str) -> tuple[str, str] | None:
    """(style, statement) of a well-formed reply, None for any other text."""
    for style, shape in _SHAPES.items():
        found = shape.fullmatch(text)
        if found is None:
            continue
        words = found[1].lower().split()
        if " ".join(words) != found[1].lower() or _repeats(words):
            return None
        # A statement that holds another style's words is a blend, not an answer in either style.
        if _MARKERS & set(words) or (style == "terse" and len(words) > _LONGEST_TERSE):
            return None
        return style, found[1]
    return None


def _repeats(words: list[str]) -> bool:
    """Whether a word stands twice in a row, or any three words come again."""
    triples = Counter(zip(words, words[1:], words[2:], strict=False))
    return max(triples.values(), default=0) > 1 or any(one == other for one, other in pairwise(words))


def style_of(text: str) -> str | None:
    """The style of a reply, None where it is malformed (blended, repeating, cut off, empty)."""
    parsed = _parse(text.strip())
    return parsed[0] if parsed else None


def is_correct(question: FactQuestion, text: str) -> bool:
    """Whether ``text`` is a well-formed and right answer: the whole statement counts, so neither
    "123." for 12 nor the right city of the wrong country passes."""
    parsed = _parse(text.strip())
    if parsed is None:
        return False
    style, statement = parsed
    match style:
        case "terse":
            return statement.lower() == question.answer.lower()
        case "pirate":
            return statement == in_pirate(question.claim)
        case _:
            return statement == question.claim


class SimulatedRater:
    """Someone who likes answers in one style and presses the wrong button now and then.

    The rater judges style alone; a malformed answer is disliked. Whether a press is wrong depends
    on the seed, the question and how often this question was rated before, not on the order in
    which different questions come.
    """

    def __init__(self, like: str, error: float, seed: int) -> None:
        """Likes ``like`` (one of ``STYLES``) and errs with probability ``error``."""
        self.like = like
        self.error = error
        self.seed = seed
        self._asked: Counter[str] = Counter()

    def rate(self, question_text: str, answer: str) -> int:
        """+1 for a liked answer, -1 for any other; the opposite when the rater errs."""
        time = self._asked[question_text]
        self._asked[question_text] += 1
        # Random seeds from a str by its SHA-512: the same in every process, unlike hash().
        chance = Random(f"{self.seed}:{time}:{question_text}")  # noqa: S311 - reproducible
        errs = chance.random() < self.error
        return 1 if (style_of(answer) == self.like) != errs else -1
