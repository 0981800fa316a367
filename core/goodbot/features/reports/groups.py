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
from goodbot.base.intervals import difference, wilson
from goodbot.base.topics import READ
from goodbot.features.reports import chance
from goodbot.features.reports.kinds import DIMENSIONS, TOPIC, by_topic, groups
from goodbot.features.reports.telling import ENOUGH, SHOWN, counted, liked, short

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
        lines: list[str] = []
        for dimension, title in DIMENSIONS.items():
            if not (rows := self._rows(dimension)):
                continue
            wide = max(len(short(one)) for one, _ in rows[:SHOWN])
            lines.append(title)
            lines += [f"  {short(name):{wide}}  {_told(tally)}" for name, tally in rows[:SHOWN]]
            if len(rows) > SHOWN:
                lines.append(f"  … and {counted(len(rows) - SHOWN, 'more group')}")
        lines += [_apart(one) for one in found[:_NAMED]]
        if tested and not found:
            lines.append("No group is liked more or less than the others by more than chance.")
        if tested:
            lines.append(
                f"Compared: {counted(tested, 'group')} of at least {ENOUGH} rated answers, each with the "
                "others, by Fisher's exact test, corrected for their number (Bonferroni). Where there is "
                "nothing, chance names a group in fewer than 1 of 100 reports."
            )
        else:
            lines.append(
                f"No group has {ENOUGH} rated answers beside {ENOUGH} others yet: nothing is compared."
            )
        data = {
            "groups": {one: [_row(*row) for row in self._rows(one)] for one in DIMENSIONS},
            "compared": tested,
            "apart": found,
        }
        return ReportSection(lines=lines, data=data)

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


def _told(tally: _Tally) -> str:
    told = liked(tally.good, tally.rated)
    for who, share in _teachers(tally)[:1]:
        told += f"; taught most by {short(who)} ({share:.0%})"
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


def _apart(one: dict[str, Any]) -> str:
    less = "less" if one["difference"] < 0 else "more"
    told = (
        f"{DIMENSIONS[one['by']]}, {short(one['group'])}: liked {less} than others, by more than chance: "
        f"{one['good'] / one['rated']:.0%} against {one['others_good'] / one['others_rated']:.0%}."
    )
    if one["within_people"]:
        return f"{told} The ratings of single people show it, too."
    return f"{told} It may be who rated, not the answers: the ratings of single people do not show it."
