# SPDX-License-Identifier: Apache-2.0
"""The labels of a turn → its reward: what a reward policy is, gets and gives. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goodbot.api.labels import Opinion


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRating:
    """One rater's label as a reward policy sees it. `value` and `stars` lie in [-1, +1]."""

    value: float
    """The thumb, or the stars where there is no thumb; or what programs measured, the mean of it."""
    weight: float = 1.0
    rater: str = ""
    stars: float | None = None
    """The stars that the same rater gave beside the thumb (`star_value`)."""

    @classmethod
    def of(cls, rater: str, opinion: Opinion) -> TurnRating:
        """Make the rating behind an opinion as the store holds it."""
        if isinstance(opinion, list):
            return cls(rater=rater, value=opinion[0], stars=opinion[1])
        return cls(rater=rater, value=opinion)


@dataclass(frozen=True, kw_only=True, slots=True)
class Moments:
    """Of the last `count` rewards that a policy gave: their mean and their standard deviation."""

    mean: float = 0.0
    deviation: float = 0.0
    count: int = 0

    @classmethod
    def over(cls, rewards: Sequence[float]) -> Moments:
        """Compute mean = Σr / n and deviation = sqrt(Σ(r - mean)² / n); all zero of none."""
        if not rewards:
            return cls()
        return cls(mean=statistics.fmean(rewards), deviation=statistics.pstdev(rewards), count=len(rewards))


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardPolicy:
    """How the labels of one turn become its reward. All pure and synchronous."""

    name: str
    fn: Callable[[Sequence[TurnRating]], float | None]
    """All labels of a turn → its reward in [-1, +1], or None when it should train nothing (a tie)."""
    rescale: Callable[[float, Moments], float] | None = None
    """A reward of `fn` and the moments of the last ones, this round's among them → the reward that
    trains. Without it that of `fn` does."""
