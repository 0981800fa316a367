# SPDX-License-Identifier: Apache-2.0
"""What words add to ratings: the rule by which an objective that takes them becomes the default, applied.

Stated before the table was made. Of the arms that train with words one is fit if on every stream of words its
liked share and its facts do not end below those of the same ratings without the words (the interval of the
paired difference does not lie below 0); if irrelevant and injected words change neither (it holds 0); and if
wishes for any style beside shuffled ratings do not pass for learning (`goals`). Of those that are fit the one
whose worst stream of `HELPFUL` gains most becomes the default, if it gains there more than ratings alone; of
two that are as good (within .01) the simpler, which stands first. Where none is fit, ratings alone stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tests.learning.arms import DEFAULT, NOTED, WORDS
from tests.learning.course import Course
from tests.learning.figures import Estimate, estimate, of, paired

HELPFUL = ("chips", "12 chips", "80 chips", "reasons", "better", "flip with reasons")
HARMLESS = ("irrelevant", "injected")
EQUAL = 0.01
_CREDITED = "| good by | steps before | liked | facts |\n|---|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class Beside:
    """One arm on one stream, less another on the same: ratings alone, unless it says otherwise."""

    arm: str
    stream: str
    liked: Estimate
    facts: Estimate

    @property
    def below(self) -> bool:
        """Whether an interval lies below 0."""
        return self.liked.high < 0 or self.facts.high < 0

    @property
    def nothing(self) -> bool:
        """Whether both intervals hold 0."""
        return all(one.low <= 0 <= one.high for one in (self.liked, self.facts))

    @property
    def held(self) -> bool:
        """Whether it does no harm there; and teaches nothing where there is nothing to teach."""
        return not self.below and not (self.stream in HARMLESS and self.liked.low > 0)

    def __str__(self) -> str:
        return f"{self.stream}: liked {self.liked}, facts {self.facts:.3f}"


def beside(
    courses: Sequence[Course], base: str, arms: Sequence[str] = WORDS, other: str = DEFAULT
) -> list[Beside]:
    """All that the courses of a base tell of these arms, less another on the same ratings."""
    found: list[Beside] = []
    for arm in arms:
        for stream in dict.fromkeys(c.stream for c in of(courses, arm, base=base)):
            ours, bits = (of(courses, one, stream, base) for one in (arm, other))
            liked = paired(ours, bits, lambda c: c.live[-1].liked)
            facts = paired(ours, bits, lambda c: c.live[-1].facts)
            if liked:
                found.append(Beside(arm=arm, stream=stream, liked=estimate(liked), facts=estimate(facts)))
    return found


def chosen(courses: Sequence[Course]) -> tuple[str, dict[str, float]]:
    """By the rule, and the worst helpful gain of each arm that is fit; `DEFAULT`: ratings alone stay."""
    rows = [one for base in dict.fromkeys(c.base for c in courses) for one in beside(courses, base)]
    worst: dict[str, float] = {}
    for arm in WORDS:
        mine = [one for one in rows if one.arm == arm]
        gains = [one.liked.mean for one in mine if one.stream in HELPFUL]
        if gains and all(one.held for one in mine):
            worst[arm] = min(gains)
    best = DEFAULT
    for arm, gain in worst.items():
        if gain > max(worst.get(best, 0.0), 0.0) + (0.0 if best == DEFAULT else EQUAL):
            best = arm
    return best, worst


def text(courses: Sequence[Course]) -> str:
    """The section of the report; empty where no words were said."""
    parts: list[str] = []
    for base in dict.fromkeys(c.base for c in courses):
        rows = beside(courses, base, (*WORDS, *NOTED))
        if rows:
            parts += [
                f"### {base}: with words, less the same ratings without\n",
                "| arm | stream | liked | facts | |",
                "|---|---|---|---|---|",
                *(
                    f"| {one.arm} | {one.stream} | {one.liked} | {one.facts:.3f} "
                    f"| {'' if one.held else '**missed**'} |"
                    for one in rows
                ),
                "",
            ]
    if not parts:
        return ""
    best, worst = chosen(courses)
    fit = ", ".join(f"{arm} ({gain:+.3f})" for arm, gain in worst.items()) or "none"
    by_rule = f"Fit, with the worst helpful gain: {fit}. By the rule: **{best}**.\n"
    return "\n".join(["## Words beside ratings\n", by_rule, *parts, *_notes(courses), *_credit(courses)])


def _credit(courses: Sequence[Course]) -> list[str]:
    """What it does to let an episode's steps share what it came to."""
    rows: list[str] = []
    for what in ("all", "last"):
        off = of(courses, DEFAULT, f"episodes by {what}, off")
        for way in ("constant", "discounted"):
            some = of(courses, DEFAULT, f"episodes by {what}, {way}")
            alike = [replace(one, stream=other.stream) for one in some for other in off[:1]]
            liked = paired(alike, off, lambda c: c.live[-1].liked)
            facts = paired(alike, off, lambda c: c.live[-1].facts)
            if liked:
                rows.append(f"| {what} | {way} | {estimate(liked)} | {estimate(facts):.3f} |")
    return ["\n### Steps of episodes, less none\n", _CREDITED, *rows] if rows else []


def _notes(courses: Sequence[Course]) -> list[str]:
    """What the note alone does, and on top of weights."""
    rows = [
        f"| {base} | {stream} | {arm} | {fmean(c.live[-1].liked for c in some):.2f} "
        f"| {fmean(c.live[-1].facts for c in some):.3f} |"
        for base in dict.fromkeys(c.base for c in courses)
        for stream in dict.fromkeys(c.stream for c in of(courses, "notes", base=base))
        for arm in (
            "frozen",
            "notes",
            DEFAULT,
            "tapered + note",
            "tapered + all notes",
            "hybrid",
            "hybrid + note",
        )
        if (some := of(courses, arm, stream, base))
    ]
    return [
        "### Notes and weights\n",
        "| base | stream | arm | liked | facts |",
        "|---|---|---|---|---|",
        *rows,
    ]
