# SPDX-License-Identifier: Apache-2.0
"""No rater among several weighs more in a round than a share of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence

_CAPPED_FROM = 3
"""Raters. Two see each other's ratings and can talk; a cap would make each of them half."""
_TENTH, _EIGHTH = 1 / 10, 1 / 8
"""Whoever has this part of a round counts as one rater, whoever has less as part of one: a tenth when
it is asked whether there are three, an eighth when it is asked among how many the round is shared."""


def share_weights(
    raters: Sequence[Collection[str]],
    share: float,
    weights: Sequence[float] | None = None,
    usual: float = math.inf,
    beside: Sequence[tuple[str, float]] = (),
) -> list[float]:
    """The weight in (0, 1] of each turn under which no rater has too much of their sum: of `rater_factors`.

    `weights` is what the turns weigh before (1 each).
    """
    before = [1.0] * len(raters) if weights is None else list(weights)
    factors = rater_factors(raters, share, before, usual, beside)
    if not factors:
        return before
    return [
        weight * math.fsum(sorted(factors[rater] for rater in turn)) / len(turn)
        for turn, weight in zip(raters, before, strict=True)
    ]


def rater_factors(
    raters: Sequence[Collection[str]],
    share: float,
    weights: Sequence[float],
    usual: float = math.inf,
    beside: Sequence[tuple[str, float]] = (),
) -> dict[str, float]:
    """What all that each rater teaches is multiplied by, in (0, 1]; empty where nobody is held back.

    `raters` are those who labelled each turn, `weights` what the turns weigh before; a
    turn belongs to its raters in equal parts. `beside` is what else trains, each with its rater and its
    weight. With t(r) what rater r has of the total T, and a round
    of R = min(T, `usual`), so that nobody makes the others small by rating without end,

        three raters?   Σ min(1, t(r) / (R/10)) ≥ 3           else nobody is held back
        among           k = max(3, floor Σ min(1, t(r) / (R/8)))
        cap             s = max(share, 1/k)
        level           L = s · Σ min(t(r), L)                nobody has more than L

    Of 38, 1 and 1 ratings all count (1.5 raters); of 20, 10 and 10 each rater has a third; of 9, 9,
    9 and 3 all count, since three of the four would else be cut down to the fourth; of 400, 10, 10
    and 10 each has a quarter. At least 3R/10 trains: at L = R/10 the sum is 3R/10 or more and s is
    1/3 or more; at L = R/8 it is kR/8; so the level lies there or above. Who rates more never weighs
    less than who rates less, since min(t, L) grows with t.

    Against many accounts of one person this does little: each of them is named by an owner, and
    `link` makes several one. It takes a fifth of the round in such accounts to bring the cap upon
    somebody who rates alone.
    """
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for turn, weight in zip(raters, weights, strict=True):
        for rater in turn:
            parts[rater].append(weight / len(turn))
    for rater, weight in beside:
        parts[rater].append(weight)
    totals = {rater: math.fsum(sorted(owned)) for rater, owned in parts.items()}
    size = min(math.fsum(sorted(totals.values())), usual)
    if _present(totals.values(), _TENTH * size) < _CAPPED_FROM:
        return {}
    among = max(_CAPPED_FROM, _present(totals.values(), _EIGHTH * size))
    limit = _water_level(sorted(totals.values()), max(share, 1 / among))
    return {rater: min(1.0, limit / total) for rater, total in totals.items()}


def _present(totals: Collection[float], whole: float) -> int:
    """How many raters there are when `whole` makes one."""
    return int(math.fsum(sorted(min(1.0, total / whole) for total in totals)) + 1e-9)


def _water_level(totals: Sequence[float], share: float) -> float:
    """The largest L with L = share · Σ min(total, L); inf when no total (ascending) is above its share.

    With the k largest held at L, and S the sum of the others, L = share · S / (1 - k · share).
    """
    if totals[-1] <= share * math.fsum(totals):
        return math.inf
    for held in range(1, len(totals)):
        free, rest = totals[:-held], 1 - held * share
        if rest <= 1e-12:  # a whole number of shares fills the round: all of those get the same
            return totals[-held]
        level = share * math.fsum(free) / rest
        if free[-1] <= level:
            return level
    return totals[0]
