# SPDX-License-Identifier: Apache-2.0
"""Whose ratings the live version has learnt from, and which part of it is whose."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from goodbot.api.judge import JUDGE
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.base.intervals import wilson
from goodbot.features.reports.telling import ENOUGH, SHOWN, counted, liked, version

_HALF = 0.5


class Teachers(ReportPart):
    """Parts of what was learnt, by the weights that a training gave."""

    def __init__(self) -> None:
        self._answers = 0
        self._weight: defaultdict[str, float] = defaultdict(float)
        self._taught: Counter[str] = Counter()
        self._good: Counter[str] = Counter()
        self._rated: Counter[str] = Counter()

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        for answer in answers:
            for rater, thumb in answer.thumbs.items():
                if thumb:
                    self._rated[rater] += 1
                    self._good[rater] += thumb > 0
            if answer.taught:
                self._answers += 1
                for rater, weight in answer.taught.items():
                    self._weight[rater] += weight
                    self._taught[rater] += 1

    def told(self, bot: ReportedBot) -> ReportSection:
        whole = sum(self._weight.values())
        people: list[dict[str, Any]] = [
            {
                "person": who,
                "share": weight / whole,
                "answers": self._taught[who],
                "good": self._good[who],
                "rated": self._rated[who],
            }
            for who, weight in sorted(self._weight.items(), key=lambda one: -one[1])
        ]
        most = self._most(people[0]["person"], people[0]["share"]) if people else None
        data = {"version": bot.live, "answers": self._answers, "people": people, "most": most}
        if not bot.live:
            return ReportSection(lines=["The base model answers: nobody has taught it."], data=data)
        lines = [
            f"  {one['share']:4.0%}  {_name(one['person'])}, {counted(one['answers'], 'answer')}; "
            f"of all that they rated {liked(one['good'], one['rated'])}"
            for one in people[:SHOWN]
        ]
        if len(people) > SHOWN:
            lines.append(f"  … and {counted(len(people) - SHOWN, 'more person', 'more people')}")
        if most:
            lines.append(
                f"{_name(most['person'])} has taught more than half: {most['share']:.0%} "
                f"({most['low']:.0%} to {most['high']:.0%})."
            )
        which = "newest" if bot.more else "stored"
        first = (
            f"{version(bot.live)} has learnt from {self._answers:,} of the {bot.answers:,} {which} answers."
        )
        return ReportSection(lines=[first, *lines], data=data)

    def _most(self, who: str, share: float) -> dict[str, Any] | None:
        """Who has surely taught more than half of it, of several."""
        low, high = wilson(round(share * self._answers), self._answers)
        if len(self._weight) < 2 or self._answers < ENOUGH or low <= _HALF:
            return None
        return {"person": who, "share": share, "low": low, "high": high}


def _name(rater: str) -> str:
    return "a judge" if rater.startswith(f"{JUDGE}:") else rater
