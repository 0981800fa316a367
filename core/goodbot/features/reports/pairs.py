# SPDX-License-Identifier: Apache-2.0
"""What versions say to fixed questions: whether two that differ in one thing get like answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from goodbot.api.report import FixedQuestion, ReportedAnswer, ReportedBot, ReportPart, ReportSection
from goodbot.api.texts import ENGLISH, beside, catalogue, commas, pauses, percent, say
from goodbot.base.topics import words
from goodbot.features.reports.telling import SHOWN, number, version

_TIMES = 2
"""An answer that is so much longer than the other is not like it."""


class Pairs(ReportPart):
    """Looks at no answer of anybody's: what was asked is the same for each version."""

    def add(self, answers: Sequence[ReportedAnswer]) -> None:
        pass

    def told(self, bot: ReportedBot) -> ReportSection:
        pairs = _pairs(bot.questions)
        rows = [row for number, said in sorted(bot.said.items()) if (row := _row(number, said, pairs))]
        own = [
            {"version": number, **_own(bot.questions, said)}
            for number, said in sorted(bot.said.items())
            if any(one.right and one.text in said for one in bot.questions)
        ]
        newest = bot.live if bot.live in bot.said else max(bot.said, default=None)
        shown = _shown(pairs, bot.said[newest]) if newest is not None else []
        read, abouts = bot.language, {one.about for one, _ in pairs}
        names = {about: named for about in abouts if (named := _about(about, read)) != about}
        data = {"versions": rows, "own": own, "of": newest, "pairs": shown}
        data |= {"questions": len(bot.questions), "names": names}
        lines = [_told(row, read, names) for row in rows[-SHOWN:]] or [say("page_none_asked", read)]
        for one in own[-SHOWN:]:
            counts = {name: number(one[name], read) for name in ("right", "asked")}
            lines.append(say("page_own_count", read, version=version(one["version"], read), **counts))
        return ReportSection(lines=[*lines, say("report_ask", read)], data=data)


def _about(name: str, read: str) -> str:
    """What ours differ in, in the reader's language; what an owner's own do, as they have called it."""
    key = f"about_{name}"
    return say(key, read) if key in catalogue(ENGLISH) else name


def _pairs(questions: Sequence[FixedQuestion]) -> list[tuple[FixedQuestion, FixedQuestion]]:
    halves: defaultdict[int, list[FixedQuestion]] = defaultdict(list)
    for one in questions:
        if one.about:
            halves[one.pair].append(one)
    return [(two[0], two[1]) for two in halves.values() if len(two) == 2]


def likeness(one: str, other: str) -> float:
    """Which part of the words of two answers is in both."""
    here, there = _pieces(one), _pieces(other)
    return len(here & there) / len(here | there) if here | there else 1.0


def _pieces(text: str) -> frozenset[str]:
    """The words of its beginning; of scripts that put no spaces between them the characters."""
    return frozenset(piece for word in words(text) for piece in (word if _unspaced(word) else [word]))


def _unspaced(word: str) -> bool:
    return any("\u0e00" <= letter <= "\u0eff" or "\u2e80" <= letter <= "\u9fff" for letter in word)


def _row(
    number: int, said: Mapping[str, str], pairs: Sequence[tuple[FixedQuestion, FixedQuestion]]
) -> dict[str, Any] | None:
    """How like the two answers of a pair are, by what the pairs differ in."""
    by: defaultdict[str, list[tuple[float, bool]]] = defaultdict(list)
    for one, other in pairs:
        if one.text in said and other.text in said:
            first, second = said[one.text], said[other.text]
            short, long = sorted((len(first), len(second)))
            by[one.about].append((likeness(first, second), long > _TIMES * max(short, 1)))
    if not by:
        return None
    every = [each for found in by.values() for each in found]
    return {
        "version": number,
        "pairs": len(every),
        "alike": fmean(each for each, _ in every),
        "longer": sum(longer for _, longer in every),
        "about": {about: fmean(each for each, _ in found) for about, found in by.items()},
    }


def _shown(
    pairs: Sequence[tuple[FixedQuestion, FixedQuestion]], said: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Each pair with both answers, the least alike first."""
    found = [
        {
            "about": one.about,
            "one": one.value,
            "other": other.value,
            "question": one.text,
            "said": said[one.text],
            "other_said": said[other.text],
            "alike": likeness(said[one.text], said[other.text]),
        }
        for one, other in pairs
        if one.text in said and other.text in said
    ]
    return sorted(found, key=lambda one: one["alike"])


def holds(text: str, word: str) -> bool:
    """Whether a text has a word, whatever its case, and not as a part of a longer one: `8`, but no `80`."""
    text, word = text.casefold(), word.casefold()
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_joined(text[at - 1 : at], word[0]) or _joined(word[-1], text[end : end + 1])):
            return True
        at = text.find(word, at + 1)
    return False


def _joined(one: str, other: str) -> bool:
    """Both are letters or digits of a script that puts spaces between words."""
    return (one + other).isascii() and one.isalnum() and other.isalnum()


def _own(questions: Sequence[FixedQuestion], said: Mapping[str, str]) -> dict[str, Any]:
    """How many of the questions with right answers were answered right, and which were not."""
    asked = [one for one in questions if one.right and one.text in said]
    wrong = [one.text for one in asked if not right(one, said[one.text])]
    return {"right": len(asked) - len(wrong), "asked": len(asked), "wrong": wrong}


def right(question: FixedQuestion, answer: str) -> bool:
    """Whether an answer holds one of the words of a right one."""
    return any(holds(answer, word) for word in question.right)


def _told(row: Mapping[str, Any], read: str, names: Mapping[str, str]) -> str:
    about = [f"{names.get(name, name)} {percent(share, read)}" for name, share in row["about"].items()]
    pairs = say("page_pairs_count", read, count=number(row["pairs"], read))
    alike = say("page_alike", read, share=percent(row["alike"], read))
    longer = say("page_twice_long", read, count=number(row["longer"], read)) if row["longer"] else ""
    told = pauses(read, pairs, beside(alike, commas(read, *about), read), longer)
    return f"{version(row['version'], read)}  {told}"
