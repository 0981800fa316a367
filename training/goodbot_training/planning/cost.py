# SPDX-License-Identifier: Apache-2.0
"""Seconds of the parts of a round: measured, scaled up, added."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from goodbot_training.memory.fit import MemoryPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Seconds of all processors together, and of the clock on the wall."""

    cpu: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(cpu=self.cpu + other.cpu, wall=self.wall + other.wall)

    def __mul__(self, factor: float) -> Cost:
        return Cost(cpu=self.cpu * factor, wall=self.wall * factor)


def total(costs: Iterable[Cost]) -> Cost:
    """Their sum."""
    return sum(costs, Cost())


class Stopwatch:
    """Laps in this process. The first one begins where the process did, on the CPU's clock."""

    def __init__(self) -> None:
        self._cpu, self._wall = 0.0, time.perf_counter() - time.process_time()

    def lap(self) -> Cost:
        """What it cost since the last lap."""
        cpu, wall = time.process_time(), time.perf_counter()
        found = Cost(cpu=cpu - self._cpu, wall=wall - self._wall)
        self._cpu, self._wall = cpu, wall
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class LinearCost:
    """`a + b · n`, neither below 0."""

    a: Cost
    b: Cost

    def at(self, n: float) -> Cost:
        """The cost of so many."""
        return self.a + self.b * n

    @classmethod
    def through(cls, found: Sequence[tuple[float, Cost]]) -> LinearCost:
        """The least squares line through points `(n, cost)`; through 0 where they are all of one size."""
        fits = [_fit([(n, getattr(cost, name)) for n, cost in found]) for name in ("cpu", "wall")]
        (a, b), (a_wall, b_wall) = fits
        return cls(a=Cost(cpu=a, wall=a_wall), b=Cost(cpu=b, wall=b_wall))


def _fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    if not points:
        return 0.0, 0.0
    x, y = np.array(points, np.float64).T
    slope = y.sum() / x.sum() if x.sum() else 0.0
    spread = ((x - x.mean()) ** 2).sum()
    if not spread:
        return 0.0, float(slope)
    steep = float(((x - x.mean()) * (y - y.mean())).sum() / spread)
    rest = float(y.mean() - steep * x.mean())
    if rest < 0:
        return 0.0, float(slope)
    return (rest, steep) if steep >= 0 else (float(y.mean()), 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundEstimate:
    """Of one round."""

    how: str
    """`measured` on a miniature, or `counted` in operations."""
    train: int
    held_out: int
    too_long: int
    """Rated answers by their part."""
    tokens: int
    """Of those that are not too long, prompt and response."""
    longest: int
    learning_rate: float
    share: float
    """How far the round goes of the usual way: less than 1 where somebody is outvoted."""
    steps: int
    passes: float
    memory: MemoryPlan
    peak: int
    """Bytes that the miniature took at most; 0: not known."""
    parts: dict[str, Cost]
    """By the phases of the worker protocol: `load`, `rollouts`, `train`, `gate`."""
    total: Cost
    least: Cost
    most: Cost
    """With the fewest and the most answers that the gate may sample; `total` lies between."""
