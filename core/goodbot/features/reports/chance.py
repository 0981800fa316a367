# SPDX-License-Identifier: Apache-2.0
"""Whether two shares differ by more than chance, also where many are compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

SURE = 0.01
"""A report in which nothing is to be found names something in less than one of a hundred cases."""
_K = TypeVar("_K")
Count = tuple[int, int]
"""So many, of so many."""


def fisher(one: Count, other: Count) -> float:
    """How likely chance alone sets two shares so far apart: Fisher's exact test, its smaller tail doubled."""
    (few, n), (rest, m) = one, other
    total = few + rest
    if few * m < rest * n:  # look at what there is more of
        few, total = n - few, n + m - total
    if not (0 < total < n + m and n and m):
        return 1.0
    term = math.exp(_choose(total, few) + _choose(n + m - total, n - few) - _choose(n + m, n))
    tail = term
    for found in range(few, min(n, total)):
        term *= (total - found) * (n - found) / ((found + 1) * (m - total + found + 1))
        tail += term
        if term <= tail * 1e-15:
            break
    return min(1.0, 2 * tail)


def _choose(of: int, some: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def holm(chances: Mapping[_K, float]) -> list[_K]:
    """Which of so many comparisons are more than chance, taken together (Holm 1979)."""
    found: list[_K] = []
    for place, (key, chance) in enumerate(sorted(chances.items(), key=lambda item: item[1])):
        if chance * (len(chances) - place) >= SURE:
            break
        found.append(key)
    return found


def within(pairs: Iterable[tuple[Count, Count]]) -> float:
    """How likely chance sets two shares so far apart within each of several parts (Mantel and Haenszel).

    With the sign of the difference: below 0, the first share is the smaller one. 1 where no part tells.
    """
    apart = spread = 0.0
    for (few, n), (rest, m) in pairs:
        size, total = n + m, few + rest
        if n and m:
            apart += few - n * total / size
            spread += n * m * total * (size - total) / (size * size * (size - 1))
    if not spread:
        return 1.0
    size = max(0.0, abs(apart) - 0.5) / math.sqrt(spread)
    return math.copysign(math.erfc(size / math.sqrt(2)), apart)
