# SPDX-License-Identifier: Apache-2.0
"""The intervals that goodbot states: of a share, of how far two are apart, of a mean of few."""

from __future__ import annotations

import math
from statistics import NormalDist

_Z95 = 1.959964


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % score interval of a proportion (Wilson 1927), which holds near 0 and 1 too."""
    share = successes / trials
    spread = _Z95**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = _Z95 * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


def difference(one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
    """The 95 % interval of the first proportion minus the second, each `(successes, trials)`.

    From their own intervals (Newcombe 1998, method 10).
    """
    p, q = one[0] / one[1], other[0] / other[1]
    (low, high), (least, most) = wilson(*one), wilson(*other)
    return p - q - math.hypot(p - low, most - q), p - q + math.hypot(high - p, q - least)


def student(probability: float, freedom: int) -> float:
    """A quantile of Student's t, within 1 % from 4 degrees of freedom on.

    The normal quantile with four terms of its expansion in 1/freedom (Abramowitz and Stegun, 26.7.5).
    """
    z, v = NormalDist().inv_cdf(probability), freedom
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )
