# SPDX-License-Identifier: Apache-2.0
"""The part of the report: how good the predictions are, which ratings they doubt, and what to ask.

Where they are no better than chance, they are not told. What was rated otherwise since they were made is
not doubted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodbot.api.predicted import CalibrationBin, Predicted, PredictedAnswer
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.sentences import Reason, sentence, words
from goodbot.api.texts import commas, figure, joined, percent, say
from goodbot.base.intervals import wilson
from goodbot.features.reports.telling import SHOWN, listed, number

_KEPT = 200
"""Answers of each kind that programs are told: so many a page leaves out at once."""
_FIGURES = (
    *("at", "answers", "good", "left_out", "questions", "by_person"),
    *("auc", "low", "high", "tells"),
)
_RULES = {"doubtful": "page_rule_doubtful", "odd": "page_rule_odd"}
"""The keys of what each is called."""


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
        found, read = bot.predicted, bot.language
        if found is None:
            return ReportSection(lines=[say("report_predict_off", read)], data={})
        if isinstance(found, Reason):
            why = words(found, language=read)
            told_why = sentence(why, read) if why else ""  # a newer goodbot may have kept it
            lines = [joined(read, say("report_predict_none", read), told_why)]
            return ReportSection(lines=lines, data={"why": words(found)})
        told = {name: getattr(found, name) for name in _FIGURES}
        data: dict[str, Any] = {**told, "bins": [_row(one) for one in found.bins]}
        lines = [_tried(found, read)]
        if not found.tells:
            return ReportSection(lines=[*lines, say("report_predict_chance", read)], data=data)
        lines += [*_how(found, read), *self._lines(found, data, read), say("report_predict_never", read)]
        return ReportSection(lines=lines, data=data)

    def _lines(self, found: Predicted, data: dict[str, Any], read: str) -> list[str]:
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
                what, count = say(_RULES[name], read), number(len(some), read)
                lines += listed(say("page_flagged", read, what=what, count=count), _ids(some), read)
        if lines:
            lines.append(say("report_predict_look", read))
        if ask:
            count, good = number(len(ask), read), figure(data["expected"], read)
            lines.append(say("page_predict_expected", read, count=count, good=good))
            lines.append(say("report_predict_ask", read, ids=commas(read, *_ids(ask)[:SHOWN])))
        return lines


def _tried(found: Predicted, read: str) -> str:
    shares = {"share": found.auc, "low": found.low, "high": found.high}
    told = {name: percent(share, read) for name, share in shares.items()}
    return say("report_predict_tried", read, answers=number(found.answers, read), **told)


def _how(found: Predicted, read: str) -> list[str]:
    """How it was tried, and what came of the chances that it gave."""
    key = "report_predict_person" if found.by_person else "report_predict_question"
    together = say(key, read, groups=figure(found.questions, read))
    left = say("report_predict_left", read, count=number(found.left_out, read)) if found.left_out else ""
    return [joined(read, together, left), *(_told(one, read) for one in found.bins)]


def _told(one: CalibrationBin, read: str) -> str:
    low, high = wilson(one.good, one.answers)
    shares = {"expected": one.expected, "share": one.good / one.answers, "low": low, "high": high}
    told = {name: percent(share, read) for name, share in shares.items()}
    return say("report_predict_bin", read, count=figure(one.answers, read), **told)


def _row(one: CalibrationBin) -> dict[str, Any]:
    low, high = wilson(one.good, one.answers)
    return {"answers": one.answers, "expected": one.expected, "good": one.good, "low": low, "high": high}


def _ids(some: Sequence[PredictedAnswer]) -> list[str]:
    return [one.id for one in some[:_KEPT]]
