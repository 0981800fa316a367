# SPDX-License-Identifier: Apache-2.0
"""The reward policies: the labels of one turn → its reward. Pure, synchronous, no framework.

They run in the daemon when ratings are claimed; a training job carries the finished rewards. With
several raters each of them takes the weighted mean, Σ w·r / Σ w, over the raters i of what rater i
alone says, r(i); none of them gives a reward to a turn that nobody with a weight has rated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goodbot import hookimpl
from goodbot.api.rewards import Moments, RewardPolicy, TurnRating

_BOUND = 2.0
"""Standard deviations from the mean at which a normalized reward is full."""
_FEW = 8
"""Rewards that have no spread worth dividing by."""


def binary(ratings: Sequence[TurnRating]) -> float | None:
    """Good or bad: the weighted mean of the labels' signs, r = sign(value), in [-1, +1].

    Where stars were given beside a thumb, the thumb counts; three stars alone are no vote. None
    (the turn trains nothing) when there is no vote with a weight, or when they balance out.
    """
    mean = _mean([r for r in ratings if r.value], lambda rating: _sign(rating.value))
    # Weights are floats: 0.1 + 0.2 against 0.3 is still a tie.
    return mean if mean is not None and abs(mean) > 1e-9 else None


def ordinal(ratings: Sequence[TurnRating]) -> float | None:
    """How good: r = (n - 3) / 2 of n = 1 … 5 stars: -1, -0.5, 0, 0.5, 1; a thumb alone is -1 or +1.

    Stars count before a thumb. Three stars are a reward, 0: less than what mostly gets four.
    """
    return _mean(ratings, _grade)


def hybrid(ratings: Sequence[TurnRating]) -> float | None:
    """A thumb t and n stars together: r = (t + (n - 1) / 5) / 2; each alone as `ordinal`.

    👍 with 5, 4, 3, 2, 1 stars is 0.9, 0.8, 0.7, 0.6, 0.5; 👎 is -0.1, -0.2, -0.3, -0.4, -0.5. So
    the thumb says which way, more stars are never worse, and who gives both is taken for more
    measured than who gives a thumb alone. (t · n/5 would also make 👍 with four 0.8 and 👎 with two
    -0.4, but then 👎 with one star would be the mildest of all.)
    """
    return _mean(ratings, _both)


def normalize(reward: float, recent: Moments) -> float:
    """(r - μ) / 2σ within [-1, +1]: against the mean μ and deviation σ of the last rewards.

    Two deviations are a full reward. Of fewer than eight rewards, or of rewards that are all the
    same, nothing can be said: then r stays.
    """
    if recent.count < _FEW or recent.deviation < 1e-9:
        return reward
    return max(-1.0, min(1.0, (reward - recent.mean) / (_BOUND * recent.deviation)))


@hookimpl
def register_reward_policy() -> list[RewardPolicy]:
    """Offer `binary` (the default), `ordinal`, `hybrid`, and `normalized`, which rescales `hybrid`."""
    return [
        RewardPolicy(name="binary", fn=binary),
        RewardPolicy(name="ordinal", fn=ordinal),
        RewardPolicy(name="hybrid", fn=hybrid),
        RewardPolicy(name="normalized", fn=hybrid, rescale=normalize),
    ]


def _mean(ratings: Sequence[TurnRating], alone: Callable[[TurnRating], float]) -> float | None:
    weighed = [rating for rating in ratings if rating.weight > 0]
    total = sum(rating.weight for rating in weighed)
    return sum(alone(r) * r.weight for r in weighed) / total if total else None


def _sign(value: float) -> float:
    return float((value > 0) - (value < 0))


def _grade(rating: TurnRating) -> float:
    return rating.value if rating.stars is None else rating.stars


def _both(rating: TurnRating) -> float:
    if rating.stars is None:
        return rating.value
    stars = 2 * rating.stars + 3
    return (rating.value + (stars - 1) / 5) / 2
