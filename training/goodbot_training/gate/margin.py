# SPDX-License-Identifier: Apache-2.0
"""Does a candidate tell good from bad held-out answers better? The change, and its interval.

Each held-out rating gives one pair: its reward r in [-1, 1], and y, the change of the answer's mean
token log-prob from the policy before the round to the candidate, nats. The margin is twice the slope
of y on r within each round, so that a round that made all answers less likely counts nothing:

    margin = 2 · Σ xy / Σ xx     xx = Σ (r - r̄)²,  xy = Σ (r - r̄)(y - ȳ),  yy = Σ (y - ȳ)²
    error² = 4 · (Σ yy - Σ xy² / Σ xx) / (Σ (n - 1) - 1) / Σ xx

the sums over rounds: with ratings of +1 and -1 that is the difference of the means of good and bad,
and Student's t is its distribution where ratings are dealt out at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from goodbot.base.intervals import student

from goodbot_training.job.types import HeldOutSums

if TYPE_CHECKING:
    from goodbot.api.step import Floats

    from goodbot_training.job.rollout import Rollout

_MIN_FREEDOM = 4  # below, the expansion of the quantile is off, and the interval says nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class Margin:
    """The change of the good-minus-bad margin, nats a token, over `ratings` of `rounds` rounds.

    `low` and `high` bound its t interval; they are infinite where there is too little to tell.
    """

    ratings: int
    rounds: int
    change: float
    low: float
    high: float


def sums(held_out: Sequence[Rollout], before: Sequence[Floats], after: Sequence[Floats]) -> HeldOutSums:
    """What one round's held-out ratings say, in four numbers; ratings of one sign say nothing.

    `before` and `after` are log-probs `(R,)` under the policy before the round and the candidate.
    """
    pairs = [
        (rollout.reward, float((new - old).mean()))
        for rollout, old, new in zip(held_out, before, after, strict=True)
        if rollout.reward and rollout.weight
    ]
    if len({reward > 0 for reward, _ in pairs}) < 2:
        return HeldOutSums(n=0, xx=0.0, xy=0.0, yy=0.0)
    x, y = (np.array(side, np.float64) for side in zip(*pairs, strict=True))
    x, y = x - x.mean(), y - y.mean()
    return HeldOutSums(n=len(pairs), xx=float(x @ x), xy=float(x @ y), yy=float(y @ y))


def margin(rounds: Iterable[HeldOutSums], level: float) -> Margin:
    """The change over all `rounds` and its two-sided t interval at `level`, in (0, 1)."""
    told = [one for one in rounds if one.n and one.xx > 0]
    ratings = sum(one.n for one in told)
    if not told:
        return Margin(ratings=0, rounds=0, change=0.0, low=-math.inf, high=math.inf)
    xx, xy, yy = (sum(getattr(one, name) for one in told) for name in ("xx", "xy", "yy"))
    change, freedom, half = 2 * xy / xx, ratings - len(told) - 1, math.inf
    if freedom >= _MIN_FREEDOM:
        error = 2 * math.sqrt(max(0.0, yy - xy**2 / xx) / freedom / xx)
        half = student(0.5 + level / 2, freedom) * error
    return Margin(ratings=ratings, rounds=len(told), change=change, low=change - half, high=change + half)
