# SPDX-License-Identifier: Apache-2.0
"""What is counted over courses: means, paired differences, and their bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import fmean

from tests.learning.course import Course

DRAWS = 2000
TO_REACH = 0.9

Of = Callable[[Course], float]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the musts and goals. A must that does not hold fails the study."""

    must: bool
    held: bool | None
    """None: nothing of it was run."""
    text: str
    found: str


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self:.2f}"

    def __format__(self, digits: str) -> str:
        """As a number is written, with its sign: `f"{estimate:.3f}"`."""
        mean, low, high = (format(x, f"+{digits or '.2f'}") for x in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


def estimate(values: Sequence[float]) -> Estimate:
    """Resampled with replacement; the same draws every time."""
    draw = Random(0)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return Estimate(mean=fmean(values), low=means[round(0.025 * DRAWS)], high=means[round(0.975 * DRAWS) - 1])


def of(courses: Sequence[Course], arm: str, stream: str = "", base: str = "", like: str = "") -> list[Course]:
    """Those of one arm; empty names take all."""
    return [
        c
        for c in courses
        if c.arm == arm
        and c.stream == (stream or c.stream)
        and c.base == (base or c.base)
        and c.like == (like or c.like)
    ]


def gain(course: Course) -> float:
    """Liked share of what answers in the end, less that of the base."""
    return course.live[-1].liked - course.before.liked


def facts(course: Course) -> float:
    """The same of the facts; negative is a loss."""
    return course.live[-1].facts - course.before.facts


def kept(course: Course, by_style: Mapping[str, float]) -> float:
    """Facts less those of the base *in the styles that this policy answers in*; negative is a loss.

    A base that is wrong more often in one style is right less often, without a fact lost, once
    that style is liked. `by_style` is the base's share of right answers in each.
    """
    styles = course.live[-1].styles
    count = sum(n for n, _ in styles.values())
    return sum(right - n * by_style.get(style, 0.0) for style, (n, right) in styles.items()) / count


def base_by_style(courses: Sequence[Course], base: str) -> dict[str, float]:
    """The base's share of right answers in each style, over all seeds that tell."""
    told: dict[str, list[int]] = {}
    for course in {c.seed: c for c in courses if c.base == base and c.before.styles}.values():
        for style, (n, right) in course.before.styles.items():
            counts = told.setdefault(style, [0, 0])
            counts[0], counts[1] = counts[0] + n, counts[1] + right
    return {style: right / n for style, (n, right) in told.items()}


def paired(
    courses: Sequence[Course], others: Sequence[Course], what: Of, theirs: Of | None = None
) -> list[float]:
    """`what` of each course less that of the other arm's on the same base, stream, style and seed."""

    def place(course: Course) -> tuple[str, str, str, int]:
        return (course.base, course.stream, course.like, course.seed)

    other = {place(course): course for course in others}
    return [
        what(course) - (theirs or what)(other[place(course)]) for course in courses if place(course) in other
    ]


def reached(curve: Sequence[tuple[float, float]]) -> float | None:
    """Where a curve of (ratings, liked share) first reaches nine in ten, by straight lines."""
    for (x0, y0), (x1, y1) in pairwise(curve):
        if y1 >= TO_REACH:
            return x1 if y0 >= TO_REACH or y1 == y0 else x0 + (x1 - x0) * (TO_REACH - y0) / (y1 - y0)
    return None
