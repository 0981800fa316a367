# SPDX-License-Identifier: Apache-2.0
"""Which rows of a batch break a step, found by halving it.

A step is broken when its loss or its gradient is no finite number, or when the norm of its gradient
before clipping exceeds `absurd`. Gradients add up over rows, so a half without a guilty row is whole:
g guilty rows among n are found in about 2·g·log2(n) forward and backward passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from goodbot.api.backend import StepStats

NOT_FINITE = "its loss or gradient is not a finite number"
EXPLODES = "its gradient explodes"

_TIMES = 1e4
"""Times the usual norm. A step ten or a hundred times as steep as the others is a hard example, and
clipping takes care of it; four powers of ten are an arithmetic accident that drowns all others."""
_AT_LEAST = 100.0
"""Times the norm at which gradients are clipped: what clipping hardly touches is no explosion, however
little the other steps moved."""
_AT_MOST = 1e6
"""Times that norm: absurd by itself, also in a round so small that the row is in every batch."""
_FROM = 4
"""Steps that make a usual norm."""


def absurd(steps: Sequence[StepStats], max_grad_norm: float) -> float:
    """The norm above which a step has exploded: 10⁴ × the lower quartile of the steps so far.

    The quartile and not the median: a row of a small round is easily in half of all batches.
    """
    norms = sorted(stats.grad_norm for stats in steps if not stats.skipped)
    most = _AT_MOST * max_grad_norm
    if len(norms) < _FROM:
        return most
    return min(most, max(_TIMES * norms[(len(norms) - 1) // 4], _AT_LEAST * max_grad_norm))


def broken(stats: StepStats, limit: float) -> str:
    """Why a step must not be taken; empty if it may."""
    if not (math.isfinite(stats.loss) and math.isfinite(stats.grad_norm)):
        return NOT_FINITE
    return EXPLODES if stats.grad_norm > limit else ""


def guilty_rows(
    rows: Sequence[int], examine: Callable[[Sequence[int]], StepStats], limit: float
) -> dict[int, str]:
    """The rows that break a step all by themselves, and how; empty if none does.

    `examine` tells what a step on some of the rows would report. Several may be guilty.
    """
    why = broken(examine(rows), limit)
    if not why:
        return {}
    if len(rows) == 1:
        return {rows[0]: why}
    half = len(rows) // 2
    return guilty_rows(rows[:half], examine, limit) | guilty_rows(rows[half:], examine, limit)
