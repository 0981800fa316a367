# SPDX-License-Identifier: Apache-2.0
"""Whose ratings the live version has learnt from, and which part of it is whose."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.judge import JUDGE
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.texts import commas, pauses, percent, say
from goodbot.base.intervals import wilson
from goodbot.features.reports.telling import ENOUGH, SHOWN, liked, number, version

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
        return ReportSection(lines=_lines(bot, self._answers, people, most), data=data)

    def _most(self, who: str, share: float) -> dict[str, Any] | None:
        """Who has surely taught more than half of it, of several."""
        low, high = wilson(round(share * self._answers), self._answers)
        if len(self._weight) < 2 or self._answers < ENOUGH or low <= _HALF:
            return None
        return {"person": who, "share": share, "low": low, "high": high}


def _lines(
    bot: ReportedBot, taught: int, people: Sequence[Mapping[str, Any]], most: Mapping[str, Any] | None
) -> list[str]:
    language = bot.language
    if not bot.live:
        return [say("report_nobody", language)]
    name, answers = version(bot.live, language), number(bot.answers, language)
    key = "report_of_newest" if bot.more else "report_of_stored"
    lines = [say(key, language, version=name, learnt=number(taught, language), answers=answers)]
    lines += [f"  {percent(one['share'], language):>4}  {_told(one, language)}" for one in people[:SHOWN]]
    if len(people) > SHOWN:
        more = number(len(people) - SHOWN, language)
        lines.append(f"  {say('report_more_people', language, count=more)}")
    if most:
        shares = {part: percent(most[part], language) for part in ("share", "low", "high")}
        lines.append(say("page_most_taught", language, who=_name(most["person"], language), **shares))
    return lines


def _told(one: Mapping[str, Any], language: str) -> str:
    answers = say("page_answers_count", language, count=number(one["answers"], language))
    rated = say("page_they_rated", language, liked=liked(one["good"], one["rated"], language))
    return pauses(language, commas(language, _name(one["person"], language), answers), rated)


def _name(rater: str, language: str) -> str:
    return say("page_a_judge", language) if rater.startswith(f"{JUDGE}:") else rater
