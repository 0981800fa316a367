# SPDX-License-Identifier: Apache-2.0
"""Rated answers that look wrong by fixed rules, and people who rate unlike all others.

A rule says no more than what it has seen: an answer in other letters may be the translation that somebody
asked for. So answers are listed, with the command that leaves them out; nothing is done to them.
"""

from __future__ import annotations

import heapq
import statistics
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from goodbot.api.judge import JUDGE
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.texts import say
from goodbot.features.filters.words import WordList
from goodbot.features.reports import chance, signs
from goodbot.features.reports.telling import ENOUGH, listed, number, short

if TYPE_CHECKING:
    from goodbot.features.reports.plugin import FlagsSettings

_KEPT = 200
"""Answers of a rule that programs are told: so many a page leaves out at once."""
_LONG, _TIMES = 1000, 10
"""Characters that a long answer has at least, and how often the median goes into it."""
_RULES = {
    "repeats": "page_rule_repeats",
    "other_script": "page_rule_script",
    "contact": "page_rule_contact",
    "insult": "page_rule_insult",
    "filtered": "page_rule_filtered",
    "judged": "page_rule_judged",
    "long": "report_long",
}
"""The keys of what each is called."""


class Flags(ReportPart):
    """Counts what each rule has found, and keeps the newest."""

    def __init__(self, settings: FlagsSettings | None = None) -> None:
        """Raises ConfigError for what is no word."""
        self._insults = WordList(settings.insults if settings else (), "[reports.flags] insults")
        self._count: Counter[str] = Counter()
        self._newest: defaultdict[str, list[str]] = defaultdict(list)
        self._lengths: array[int] = array("L")
        self._longest: list[tuple[int, str]] = []
        self._shared: Counter[str] = Counter()
        self._against: Counter[str] = Counter()
        self._paired: Counter[str] = Counter()
        self._split: Counter[str] = Counter()
        self._where: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=_KEPT))

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        for answer in answers:
            if not answer.ratings:
                if answer.judged is not None and answer.judged < 0:
                    self._found("judged", answer.id)
                continue
            for name, wrong in (
                ("repeats", signs.repeats(answer.answer)),
                ("other_script", signs.other_script(answer.question, answer.answer)),
                ("contact", signs.contact(answer.question, answer.answer)),
                ("insult", self._insults.stands_in(answer.answer)),
                ("filtered", bool(answer.filtered)),
            ):
                if wrong:
                    self._found(name, answer.id)
            self._lengths.append(answer.length)
            keep = heapq.heappushpop if len(self._longest) == _KEPT else heapq.heappush
            keep(self._longest, (answer.length, answer.id))
            self._compare(answer)

    def _found(self, name: str, id_: str) -> None:
        self._count[name] += 1
        if len(self._newest[name]) < _KEPT:
            self._newest[name].append(id_)

    def _compare(self, answer: ReportedAnswer) -> None:
        """Who says the opposite of what most of the others say of the same answer."""
        said = {
            who: (thumb > 0) - (thumb < 0)
            for who, thumb in answer.thumbs.items()
            if thumb and not who.startswith(f"{JUDGE}:")
        }
        whole = sum(said.values())
        up = sum(mine > 0 for mine in said.values())
        for who, mine in said.items():
            self._paired[who] += len(said) - 1
            self._split[who] += len(said) - up if mine > 0 else up
            if others := whole - mine:
                self._shared[who] += 1
                if mine * others < 0:
                    self._against[who] += 1
                    self._where[who].append(answer.id)

    def told(self, bot: ReportedBot) -> ReportSection:
        self._judge_lengths()
        people, rated = self._people(), len(self._lengths)
        rules = {name: {"count": self._count[name], "answers": self._newest[name]} for name in _RULES}
        lines = self._lines(people, bot.language)
        return ReportSection(lines=lines, data={"rated": rated, "rules": rules, "people": people})

    def _lines(self, people: Sequence[Mapping[str, Any]], read: str) -> list[str]:
        lines: list[str] = []
        for name, key in _RULES.items():
            if count := self._count[name]:
                what = say(key, read, times=_TIMES)
                told = say("page_flagged", read, what=what, count=number(count, read))
                lines += listed(told, self._newest[name], read)
        for one in people:
            counts = {name: number(one[name], read) for name in ("against", "shared")}
            lines += listed(
                say("page_opposite", read, who=short(one["person"]), **counts), one["answers"], read
            )
            lines.append(f"  {say('report_leave_person', read, who=one['person'])}")
        if not lines:
            return [say("report_nothing", read, count=number(len(self._lengths), read))]
        return [*lines, say("report_look_first", read)]

    def _judge_lengths(self) -> None:
        if len(self._lengths) < ENOUGH:
            return
        most = max(_LONG, _TIMES * statistics.median(self._lengths))
        self._count["long"] = sum(length > most for length in self._lengths)
        self._newest["long"] = [id_ for length, id_ in sorted(self._longest, reverse=True) if length > most]

    def _people(self) -> list[dict[str, Any]]:
        """Who says the opposite of others more often than not, and more often than two others do.

        Of two people who disagree nobody can tell who is unlike the rest: there have to be other pairs.
        """
        pairs, split = self._paired.total() // 2, self._split.total() // 2
        chances: dict[str, float] = {}
        for who, count in self._shared.items():
            rest = pairs - self._paired[who]
            if min(count, rest) >= ENOUGH and 2 * self._against[who] > count:
                mine, others = (self._against[who], count), (split - self._split[who], rest)
                chances[who] = chance.fisher(mine, others) if mine[0] * rest > others[0] * count else 1.0
        return [
            {
                "person": who,
                "against": self._against[who],
                "shared": self._shared[who],
                "answers": list(self._where[who]),
            }
            for who in chance.holm(chances)
        ]
