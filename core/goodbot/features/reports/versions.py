# SPDX-License-Identifier: Apache-2.0
"""What each version is like: how it is liked, its stars, how long its answers are, to which languages."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from goodbot.api.overview import VersionRatings
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.texts import commas, figure, pauses, percent, say, size
from goodbot.features.reports import chance
from goodbot.features.reports.kinds import NO_LETTERS, language, named
from goodbot.features.reports.pairs import right
from goodbot.features.reports.telling import ENOUGH, liked, number, version

_PEAK = 0.95
_LANGUAGES = 3
_SHOWN = 20
"""Versions in the table for people: the newest."""


@dataclass(slots=True)
class _Version:
    lengths: array[int] = field(default_factory=lambda: array("L"))
    stars: float = 0.0
    starred: int = 0
    languages: Counter[str] = field(default_factory=Counter[str])
    seconds: array[float] = field(default_factory=lambda: array("d"))


class VersionTable(ReportPart):
    """One row a version; of answers of other models nothing."""

    def __init__(self) -> None:
        self._of: defaultdict[int, _Version] = defaultdict(_Version)

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        for answer in answers:
            if answer.version is None:
                continue
            mine = self._of[answer.version]
            mine.lengths.append(answer.length)
            mine.languages[language(answer.answer)] += 1
            if answer.seconds is not None:
                mine.seconds.append(answer.seconds)
            if answer.stars is not None:
                mine.stars += answer.stars
                mine.starred += 1

    def told(self, bot: ReportedBot) -> ReportSection:
        rated = {one.version: one for one in bot.versions}
        rows = [self._row(one, rated.get(one), bot) for one in sorted({*self._of, *rated, *bot.said})]
        peak = _peak(bot)
        apart = _apart([rated[one] for one in (0, *bot.line) if one in rated])
        spoken = {name for row in rows for name in row["languages"]}
        names = named(spoken, bot.language)
        data = {"versions": rows, "apart": apart, "peak": peak, "names": names}
        return ReportSection(lines=_lines(bot, rows, apart, peak, names), data=data)

    def _row(self, number: int, rated: VersionRatings | None, bot: ReportedBot) -> dict[str, Any]:
        mine = self._of.get(number, _Version())
        spoken = Counter({name: count for name, count in mine.languages.items() if name != NO_LETTERS})
        return {
            "version": number,
            "live": number == bot.live,
            "learnt_from": bot.learnt.get(number, 0),
            "good": rated.good if rated else 0,
            "rated": rated.rated if rated else 0,
            "low": rated.low if rated else 0.0,
            "high": rated.high if rated else 1.0,
            "stars": mine.stars / mine.starred if mine.starred else None,
            "starred": mine.starred,
            "answers": len(mine.lengths),
            "median_length": statistics.median(mine.lengths) if mine.lengths else None,
            "seconds": _percentiles(mine.seconds),
            "memory": bot.memory.get(number),
            "right": _right(bot, number),
            "languages": {name: count / spoken.total() for name, count in spoken.most_common(_LANGUAGES)},
        }


def _lines(
    bot: ReportedBot,
    rows: Sequence[Mapping[str, Any]],
    apart: Sequence[Mapping[str, Any]],
    peak: Mapping[str, Any] | None,
    names: Mapping[str, str],
) -> list[str]:
    read = bot.language
    lines = [_told(row, read, names) for row in rows[-_SHOWN:]] or [say("report_no_answers", read)]
    if len(rows) > _SHOWN:
        lines.insert(0, f"  {say('report_older_versions', read, count=number(len(rows) - _SHOWN, read))}")
    for one in apart:
        key = "report_more_liked" if one["share"] > one["before_share"] else "report_less_liked"
        lines.append(
            say(key, read, version=version(one["version"], read), before=version(one["before"], read))
        )
    if peak:
        facts = {"version": version(peak["version"], read), "answers": number(peak["answers"], read)}
        lines.append(say("page_peak", read, share=percent(peak["share"], read), **facts))
    if bot.more:
        lines.append(say("report_newest", read, count=number(bot.answers, read)))
    if not any(one.right for one in bot.questions):
        lines.append(say("report_no_questions", read))
    return lines


def _told(row: Mapping[str, Any], read: str, names: Mapping[str, str]) -> str:
    parts = [liked(row["good"], row["rated"], read)]
    if row["stars"] is not None:
        stars = figure(row["stars"], read, digits=1)
        parts.append(say("report_stars", read, stars=stars, count=number(row["starred"], read)))
    if row["answers"]:
        length = figure(row["median_length"], read)
        parts.append(say("report_half_over", read, count=number(row["answers"], read), length=length))
    spoken = [f"{names.get(name, name)} {percent(share, read)}" for name, share in row["languages"].items()]
    parts.append(commas(read, *spoken))
    if row["right"]:
        right, asked = (figure(count, read) for count in row["right"])
        parts.append(say("report_own_right", read, right=right, asked=asked))
    if row["seconds"]:
        half, most = (figure(seconds, read, digits=1) for seconds in row["seconds"])
        parts.append(say("report_waits", read, half=half, most=most))
    if row["learnt_from"]:
        parts.append(_learnt(row, read))
    name = version(row["version"], read)
    return f"{say('page_answers_mark', read, version=name) if row['live'] else name}  {pauses(read, *parts)}"


def _learnt(row: Mapping[str, Any], read: str) -> str:
    count = figure(row["learnt_from"], read)
    if not row["memory"]:
        return say("report_learnt", read, count=count)
    return say("report_learnt_memory", read, count=count, size=size(row["memory"], read))


def _percentiles(seconds: Sequence[float]) -> tuple[float, float] | None:
    """So long half of them take at most, and so long 95 of 100."""
    if len(seconds) < 2:
        return (seconds[0], seconds[0]) if seconds else None
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    return parts[9], parts[18]


def _right(bot: ReportedBot, number: int) -> tuple[int, int] | None:
    """So many of an owner's own questions a version has answered right, of how many; None: of none."""
    said = bot.said.get(number, {})
    asked = [one for one in bot.questions if one.right and one.text in said]
    return (sum(right(one, said[one.text]) for one in asked), len(asked)) if asked else None


def _peak(bot: ReportedBot) -> dict[str, Any] | None:
    """The first version of the line that is nearly as much liked as its best, and from how much it learnt."""
    line = [one for one in bot.versions if one.rated >= ENOUGH and one.version in (0, *bot.line)]
    if len(line) < 2:
        return None
    line.sort(key=lambda one: (0, *bot.line).index(one.version))
    best = max(one.share for one in line)
    first = next(one for one in line if one.share >= _PEAK * best)
    return {"version": first.version, "answers": bot.learnt.get(first.version, 0), "share": best}


def _apart(line: Sequence[VersionRatings]) -> list[dict[str, Any]]:
    """Which versions are liked more or less than the one before, and the last than the first."""
    enough = [one for one in line if one.rated >= ENOUGH]
    pairs = {(one.version, two.version): (one, two) for one, two in [*pairwise(enough), *_ends(enough)]}
    chances = {
        key: chance.fisher((one.good, one.rated), (two.good, two.rated)) for key, (one, two) in pairs.items()
    }
    return [
        {
            "version": pairs[key][1].version,
            "before": pairs[key][0].version,
            "share": pairs[key][1].share,
            "before_share": pairs[key][0].share,
            "chance": chances[key],
        }
        for key in chance.holm(chances)
    ]


def _ends(line: Sequence[VersionRatings]) -> list[tuple[VersionRatings, VersionRatings]]:
    return [(line[0], line[-1])] if len(line) > 2 else []
