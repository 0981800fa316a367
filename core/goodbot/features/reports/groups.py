# SPDX-License-Identifier: Apache-2.0
"""How answers of each group were rated, and where groups differ by more than chance.

Each group with enough ratings is compared with the others of its kind. One person may have rated most of a
group: so what is found is looked at once more within the ratings of each person.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.texts import joined, pauses, percent, say
from goodbot.base.intervals import difference, wilson
from goodbot.base.topics import READ
from goodbot.features.reports import chance
from goodbot.features.reports.kinds import DIMENSIONS, TOPIC, by_topic, groups, named
from goodbot.features.reports.telling import ENOUGH, SHOWN, liked, number, short

RECENT = 5000
"""Answers whose topics are looked for: the newest that may be read, since a topic is a word of theirs."""
_NAMED = 3
"""Differences that are told to people."""
_CLEAR = 0.05
_Key = tuple[str, str]


@dataclass(slots=True)
class _Tally:
    good: int = 0
    rated: int = 0
    taught: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By rater, the weight of what they taught."""
    by: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By person, their good ratings and all of them."""

    @property
    def share(self) -> float:
        return self.good / self.rated if self.rated else 0.0

    def of(self, who: str) -> tuple[int, int]:
        """One person's good ratings, and all of them."""
        good, rated = self.by.get(who, (0, 0))
        return good, rated

    def count(self, answer: ReportedAnswer) -> None:
        """One answer more."""
        if (good := answer.good) is not None:
            self.good += good
            self.rated += 1
        for who, thumb in answer.thumbs.items():
            if thumb:
                mine = self.by.setdefault(who, [0, 0])
                mine[0] += thumb > 0
                mine[1] += 1
        for who, weight in (answer.taught or {}).items():
            self.taught[who] += weight


class Groups(ReportPart):
    """Good ratings by group."""

    def __init__(self) -> None:
        self._of: defaultdict[_Key, _Tally] = defaultdict(_Tally)
        self._recent: list[ReportedAnswer] = []

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        for answer in answers:
            if answer.ratings or answer.taught:
                for key in groups(answer):
                    self._of[key].count(answer)
                if answer.readable and len(self._recent) < RECENT:
                    begin = {"question": answer.question[:READ], "answer": answer.answer[:READ]}
                    self._recent.append(replace(answer, **begin))

    def told(self, bot: ReportedBot) -> ReportSection:
        self._count_topics()
        tested, found = self._apart()
        rows = {one: self._rows(one) for one in DIMENSIONS}
        names = {one: named((name for name, _ in rows[one]), bot.language, one) for one in DIMENSIONS}
        data = {
            "groups": {one: [_row(*row) for row in rows[one]] for one in DIMENSIONS},
            "compared": tested,
            "apart": found,
            "names": names,
        }
        lines = [line for one in DIMENSIONS for line in _listed(one, rows[one], names[one], bot.language)]
        lines += [_apart(one, names, bot.language) for one in found[:_NAMED]]
        return ReportSection(lines=[*lines, *_compared(tested, found, bot.language)], data=data)

    def _count_topics(self) -> None:
        recent, self._recent = self._recent, []
        names = by_topic([one.question for one in recent], [one.answer for one in recent])
        for answer, name in zip(recent, names, strict=False):
            self._of[TOPIC, name].count(answer)

    def _rows(self, dimension: str) -> list[tuple[str, _Tally]]:
        rows = [(name, tally) for (of, name), tally in self._of.items() if of == dimension]
        return sorted(rows, key=lambda row: (-row[1].rated, row[0]))

    def _apart(self) -> tuple[int, list[dict[str, Any]]]:
        """How many groups were compared; those that differ from others, the furthest first.

        What is found is no more among the others then: they look liked more only beside it.
        """
        left = {one: dict(self._rows(one)) for one in DIMENSIONS}
        chances: dict[_Key, float] = {
            key: it for one in DIMENSIONS for key, it in _chances(one, left[one]).items()
        }
        tested = len(chances)
        found: list[dict[str, Any]] = []
        while chances:
            (dimension, group), by_chance = min(chances.items(), key=lambda item: item[1])
            if by_chance * tested >= chance.SURE:
                break
            if len(left[dimension]) == 2:  # each is the other's others: the one that is liked less is meant
                group = min(left[dimension], key=lambda name: left[dimension][name].share)
            one = left[dimension].pop(group)
            others = [*left[dimension].values()]
            found.append({"by": dimension, "group": group, **_difference(one, others), "chance": by_chance})
            chances = {key: it for key, it in chances.items() if key[0] != dimension}
            chances |= _chances(dimension, left[dimension])
        return tested, sorted(found, key=lambda one: -abs(one["difference"]))


def _chances(dimension: str, left: Mapping[str, _Tally]) -> dict[_Key, float]:
    """Of each group that is large enough, how likely chance alone sets it so far apart from the others."""
    good, rated = sum(one.good for one in left.values()), sum(one.rated for one in left.values())
    return {
        (dimension, name): chance.fisher((one.good, one.rated), (good - one.good, rated - one.rated))
        for name, one in left.items()
        if min(one.rated, rated - one.rated) >= ENOUGH
    }


def _difference(one: _Tally, others: Sequence[_Tally]) -> dict[str, Any]:
    """How far it is from them, and whether the ratings of each person say the same."""
    good, rated = sum(it.good for it in others), sum(it.rated for it in others)
    low, high = difference((one.good, one.rated), (good, rated))
    apart = one.share - good / rated
    same = chance.within(
        ((mine[0], mine[1]), (sum(it.of(who)[0] for it in others), sum(it.of(who)[1] for it in others)))
        for who, mine in one.by.items()
    )
    return {
        "good": one.good,
        "rated": one.rated,
        "others_good": good,
        "others_rated": rated,
        "difference": apart,
        "low": low,
        "high": high,
        "within_people": abs(same) < _CLEAR and (same < 0) == (apart < 0),
    }


def _listed(
    dimension: str, rows: Sequence[tuple[str, _Tally]], names: Mapping[str, str], read: str
) -> list[str]:
    if not rows:
        return []
    shown = [(short(names.get(name, name)), _told(tally, read)) for name, tally in rows[:SHOWN]]
    wide = max(len(name) for name, _ in shown)
    lines = [say(DIMENSIONS[dimension], read), *(f"  {name:{wide}}  {told}" for name, told in shown)]
    if len(rows) > SHOWN:
        lines.append(f"  {say('report_more_groups', read, count=number(len(rows) - SHOWN, read))}")
    return lines


def _told(tally: _Tally, read: str) -> str:
    told = liked(tally.good, tally.rated, read)
    for who, share in _teachers(tally)[:1]:
        most = say("report_taught_most", read, who=short(who), share=percent(share, read))
        told = pauses(read, told, most)
    return told


def _teachers(tally: _Tally) -> list[tuple[str, float]]:
    """Who has taught what part of it, the most first."""
    whole = sum(tally.taught.values())
    return sorted(((who, weight / whole) for who, weight in tally.taught.items()), key=lambda one: -one[1])


def _row(name: str, tally: _Tally) -> dict[str, Any]:
    low, high = wilson(tally.good, tally.rated) if tally.rated else (0.0, 1.0)
    return {
        "group": name,
        "good": tally.good,
        "rated": tally.rated,
        "low": low,
        "high": high,
        "taught": dict(_teachers(tally)[:SHOWN]),
    }


def _apart(one: dict[str, Any], names: Mapping[str, Mapping[str, str]], read: str) -> str:
    by, group = one["by"], one["group"]
    facts = {
        "by": say(DIMENSIONS[by], read),
        "group": short(names[by].get(group, group)),
        "share": percent(one["good"] / one["rated"], read),
        "other": percent(one["others_good"] / one["others_rated"], read),
    }
    told = say("report_apart_less" if one["difference"] < 0 else "report_apart_more", read, **facts)
    return joined(read, told, say("page_people_too" if one["within_people"] else "page_people_not", read))


def _compared(tested: int, found: Sequence[Any], read: str) -> list[str]:
    if not tested:
        return [say("page_none_compared", read, enough=ENOUGH)]
    how = say("report_compared", read, count=number(tested, read), enough=ENOUGH)
    nothing = [] if found else [say("page_none_apart", read)]
    return [*nothing, joined(read, how, say("report_by_chance", read))]
