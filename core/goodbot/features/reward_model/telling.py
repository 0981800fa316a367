# SPDX-License-Identifier: Apache-2.0
"""The part of the report: how good the predictions are, which ratings they doubt, and what to ask.

Where they are no better than chance, they are not told. What was rated otherwise since they were made is
not doubted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodbot.api.predicted import FEATURE, CalibrationBin, Predicted, PredictedAnswer
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.sentences import clause
from goodbot.base.intervals import wilson
from goodbot.features.reports.telling import SHOWN, counted, listed

_KEPT = 200
"""Answers of each kind that programs are told: so many a page leaves out at once."""
_OFF = f"Nothing: it is off until `[features.{FEATURE}]` is in the config, and has not looked before that."
_FIGURES = (
    *("at", "answers", "good", "left_out", "questions", "by_person"),
    *("auc", "low", "high", "tells"),
)
_NEVER = "It looks on: nothing is learnt from it, and it rates no answer."
_TITLES = {"doubtful": "Rated otherwise than it predicts", "odd": "Unlike all other answers"}


class PredictedPart(ReportPart):
    """Keeps how each answer is rated now."""

    def __init__(self) -> None:
        self._good: dict[str, bool] = {}
        self._unrated: set[str] = set()

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        for answer in answers:
            if answer.good is not None:
                self._good[answer.id] = answer.good
            elif not answer.ratings:
                self._unrated.add(answer.id)

    def told(self, bot: ReportedBot) -> ReportSection:
        found = bot.predicted
        if found is None:
            return ReportSection(lines=[_OFF], data={})
        if isinstance(found, str):
            return ReportSection(lines=[f"Nothing yet: {clause(found, small=True)}."], data={"why": found})
        ranks = f"{found.auc:.0%} of pairs (99% interval {found.low:.0%} to {found.high:.0%}; chance is 50%)"
        on = counted(found.answers, "rated answer")
        tried = f"Tried on {on}: a good one is ranked before a bad one in {ranks}."
        told = {name: getattr(found, name) for name in _FIGURES}
        data: dict[str, Any] = {**told, "bins": [_row(one) for one in found.bins]}
        if not found.tells:
            return ReportSection(
                lines=[tried, "That may be chance. So it says nothing of any answer."], data=data
            )
        return ReportSection(lines=[tried, *_how(found), *self._lines(found, data), _NEVER], data=data)

    def _lines(self, found: Predicted, data: dict[str, Any]) -> list[str]:
        """What it says of single answers, which `data` gets, too."""
        doubtful = [one for one in found.said if one.doubtful and self._good.get(one.id) is one.good]
        odd = [one for one in found.said if one.odd and one.id in self._good]
        ask = [one for one in found.said if one.id in self._unrated]
        doubtful.sort(key=lambda one: -abs(float(one.good or False) - one.chance))
        ask.sort(key=lambda one: abs(0.5 - one.chance))
        rules = {"doubtful": doubtful, "odd": odd}
        data["rules"] = {name: {"count": len(some), "answers": _ids(some)} for name, some in rules.items()}
        data |= {"rated": found.answers, "people": [], "ask": _ids(ask), "unrated": len(ask)}
        data["expected"] = sum(one.chance for one in ask)
        lines: list[str] = []
        for name, some in rules.items():
            if some:
                lines += listed(f"{_TITLES[name]}: {counted(len(some), 'answer')}.", _ids(some))
        if lines:
            lines.append("Look at them first: a prediction may be wrong. After you left some out: `train`.")
        if ask:
            expected = f"it expects {data['expected']:.0f} to be liked"
            lines.append(f"Of {counted(len(ask), 'answer')} that nobody has rated, {expected}.")
            lines.append(f"It is least sure of: {', '.join(_ids(ask)[:SHOWN])}.")
        return lines


def _how(found: Predicted) -> list[str]:
    """How it was tried, and what came of the chances that it gave."""
    together = "the same question or person" if found.by_person else "the same question"
    left = f" {counted(found.left_out, 'answer')} could not be read." if found.left_out else ""
    return [
        f"No answer to {together} was in what it had learnt from ({found.questions:,} groups).{left}",
        "Predicted, and then rated good: " + "; ".join(map(_told, found.bins)) + ".",
    ]


def _told(one: CalibrationBin) -> str:
    low, high = wilson(one.good, one.answers)
    return f"{one.expected:.0%}, {one.good / one.answers:.0%} ({low:.0%} to {high:.0%}) of {one.answers:,}"


def _row(one: CalibrationBin) -> dict[str, Any]:
    low, high = wilson(one.good, one.answers)
    return {"answers": one.answers, "expected": one.expected, "good": one.good, "low": low, "high": high}


def _ids(some: Sequence[PredictedAnswer]) -> list[str]:
    return [one.id for one in some[:_KEPT]]
