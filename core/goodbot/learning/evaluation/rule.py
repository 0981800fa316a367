# SPDX-License-Identifier: Apache-2.0
"""When a new version has lost to the one before. Pure."""

from __future__ import annotations

import math

from goodbot.store.comparisons import Tally

_CHANCE = 0.2
"""A version that is just as good loses by luck at most so often."""


def loses(tally: Tally) -> bool:
    """Whether a clear majority of the decided choices is against the new version.

    Clear: were both equally good, a coin would give the old one so many or more of them in at most
    a fifth of all cases, Σ C(n, k) / 2ⁿ over k ≥ old. That is 3 : 0, 4 : 0, 4 : 1, 5 : 1 or 6 : 2.
    Two choices never suffice, nor does 3 : 1 or 3 : 2. It is a low bar for a proof and is meant to
    be: so few choices prove nothing, and to stay with what one had costs little.
    """
    n = tally.decided
    by_luck = sum(math.comb(n, k) for k in range(tally.old, n + 1)) / 2**n
    return tally.old > tally.new and by_luck <= _CHANCE


def is_certain(tally: Tally) -> bool:
    """Whether the choices that are still open cannot change what `loses` says."""
    against = Tally(new=tally.new, old=tally.old + tally.open)
    for_it = Tally(new=tally.new + tally.open, old=tally.old)
    return loses(against) == loses(for_it)
