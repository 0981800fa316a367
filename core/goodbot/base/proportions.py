"""The intervals that goodbot states of a share, and of how far two are apart."""

from __future__ import annotations

import math

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
