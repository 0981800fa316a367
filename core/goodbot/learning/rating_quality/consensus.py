# SPDX-License-Identifier: Apache-2.0
"""Whose ratings want the opposite of what everybody else's want, though of other answers.

Raters seldom see the same answer, so what is compared is what their ratings say of the words. From the
ratings of all others a naive Bayes classifier (Bernoulli, by the words of the answer and its length) learns
what is liked; it then scores the answers that a rater rated good, and those rated bad:

    U = P(score of a good one < score of a bad one)          ½ where nothing is to be learnt

and a permutation of the rater's own ratings comes to such a U, or a higher one, with probability p (the
rank-sum test). Being strict or lenient changes nothing. Whose p is 1/40 or less is outvoted, the one with the
lowest first, of equal ones the more contradicted; then the rest is compared again without them: who was only
contradicted by them is cleared so.

Only while there are three raters or more, never somebody who is spared (an owner, whose bot it is), and
nobody at all where those who would be outvoted have given half of the ratings or more: there is no majority
then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random

from goodbot.learning.rating_quality.near_duplicates import words

_RATERS = 3
_CHANCE = 1 / 40
_DRAWS = 1000
_WORDS = 400
"""Of an answer, so many are looked at."""
_NEWEST = 200
"""Of a rater's ratings, so many are compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RaterOpinion:
    """What one person has said of one answer."""

    rater: str
    answer: str
    good: bool


def outvoted(ratings: Sequence[RaterOpinion], spared: Collection[str] = ()) -> set[str]:
    """Such raters; the same for the same ratings. Linear in the ratings, for each rater."""
    told = [(rated, _features(rated.answer)) for rated in ratings]
    left, found = told, set[str]()
    while len(raters := {rated.rater for rated, _ in left}) >= _RATERS:
        compared = {rater: _compared(left, rater) for rater in sorted(raters - set(spared))}
        against = [rater for rater, (chance, _) in compared.items() if chance <= _CHANCE]
        if not against:
            break
        found.add(min(against, key=compared.__getitem__))
        left = [one for one in left if one[0].rater not in found]
        if 2 * len(left) <= len(told):
            return set()
    return found


_Told = tuple[RaterOpinion, frozenset[str]]


def _features(answer: str) -> frozenset[str]:
    """The words, and the power of two that their number reaches."""
    found = words(answer)
    return frozenset((*found[:_WORDS], f"#{len(found).bit_length()}"))


def _compared(told: Sequence[_Told], rater: str) -> tuple[float, float]:
    """The probability that chance comes to such a U, or a higher one, by what all others like; and how
    many standard deviations the ranks of the good ones lie from their mean, below 0 where they are low."""
    own = [(rated.good, found) for rated, found in told if rated.rater == rater][-_NEWEST:]
    if len({good for good, _ in own}) < 2:
        return 1.0, 0.0
    liking = _liking([(rated.good, found) for rated, found in told if rated.rater != rater])
    ranks = _ranks([liking(found) for _, found in own])
    n = sum(good for good, _ in own)
    low = sum(rank for (good, _), rank in zip(own, ranks, strict=True) if good)
    spread = math.sqrt(n * (len(own) - n) * (len(own) + 1) / 12)
    distance = (low - n * (len(own) + 1) / 2) / spread
    if distance >= 0:  # agrees; drawing is what takes time
        return 1.0, distance
    draw = Random(0)  # noqa: S311  the same draws every time
    lower = sum(sum(draw.sample(ranks, n)) <= low for _ in range(_DRAWS))
    return (lower + 1) / (_DRAWS + 1), distance


def _liking(told: Sequence[tuple[bool, frozenset[str]]]) -> Callable[[frozenset[str]], float]:
    """log P(words | good) - log P(words | bad), up to what is the same for every answer.

    Each word is there or not, with one answer of each kind added to both sides (Laplace).
    """
    sizes = Counter(good for good, _ in told)
    counts = {side: Counter[str]() for side in (True, False)}
    for good, found in told:
        counts[good].update(found)

    def odds(word: str, side: bool) -> float:
        there = counts[side][word] + 1
        return math.log(there / (sizes[side] + 2 - there))

    known = {*counts[True], *counts[False]}
    weight = {word: odds(word, True) - odds(word, False) for word in known}
    return lambda found: math.fsum(weight.get(word, 0.0) for word in found)


def _ranks(scores: Sequence[float]) -> list[float]:
    """1 for the lowest; equal ones share the mean of theirs."""
    order = sorted(scores)
    first = {score: n for n, score in reversed(list(enumerate(order, 1)))}
    count = Counter(scores)
    return [first[score] + (count[score] - 1) / 2 for score in scores]
