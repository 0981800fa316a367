# SPDX-License-Identifier: Apache-2.0
"""What a version has learnt: figures of the answers before and after, and the words for them. Pure.

A training's child measures (`docs/worker-protocol.md`, the event `learnt`), the store keeps, and whatever
shows it to people takes the words from here, in their language. What is not named there is not said: it
may be chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.api.texts import commas, pauses, percent, quoted, say
from goodbot.base.printing import printable

EXAMPLES = 8
"""So many of a run's questions are kept with both answers,"""
LONGEST = 400
"""with so many characters of each."""
LENGTH = "length"
OTHER_LANGUAGE = "other_language"
MARKS = ".,;:!?…\"'“”„‘’«»()[]{}*_#-–—`~¡¿。，！？、"
"""What may stand around a word."""
_WORD = 24
_FEATURES = {
    *(LENGTH, "line_breaks", "lists", "code", "markup", "emoji", "exclamations", "questions", "greetings"),
    *("refusals", "first_person", OTHER_LANGUAGE, "opens"),
}
"""By the names that the child gives; what is more or less of each is in the catalogue."""
_DRIFT = 0.1
"""Of the answers: fewer more of them in another language are not worth a word."""
_WIDE = 66
"""Characters of an answer that are shown: with its label a line of 80 columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """One feature: mean characters of `length`, else shares of the answers, before and after.

    `change`, and its 95 % interval from `low` to `high`, are parts of the length, else of all answers.
    """

    feature: str
    word: str
    """Of `opens`: the first word."""
    before: float
    after: float
    change: float
    low: float
    high: float
    named: bool
    """Whether answers and ratings prove it; the rest is for programs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One of a run's items, by its id, and the answers before and after."""

    id: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Learnt:
    """One run's shifts, in so many answers of each version to so many questions."""

    answers: int
    questions: int
    trained: bool
    """Whether this run has trained on the questions, for want of others; an earlier one may have."""
    shifts: Sequence[Shift] = ()
    examples: Sequence[Example] = ()
    """Those of which the answers have changed most, in what is named."""

    def event(self) -> dict[str, Any]:
        """As the worker protocol has it."""
        return {"event": "learnt", **asdict(self)}

    @property
    def known(self) -> list[Shift]:
        """What there are words for. Of answers that were empty before no length is."""
        known = [one for one in self.shifts if one.feature in _FEATURES]
        return [one for one in known if one.feature != LENGTH or one.before >= 1]

    @property
    def named(self) -> list[Shift]:
        """What may be said, the largest change first."""
        return sorted((one for one in self.known if one.named), key=lambda one: -abs(one.change))

    @property
    def drift(self) -> Shift | None:
        """That answers have gone over to another language, which the ratings did not ask for."""
        for one in self.shifts:
            if one.feature == OTHER_LANGUAGE and not one.named and one.low > 0 and one.change >= _DRIFT:
                return one
        return None

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> Learnt:
        """From the child's event. Raises ValueError, KeyError or TypeError for what is none."""
        return cls(
            answers=int(event["answers"]),
            questions=int(event["questions"]),
            trained=bool(event["trained"]),
            shifts=[
                Shift(
                    feature=str(one["feature"])[:_WORD],
                    word=printable(str(one["word"]))[:_WORD],
                    named=bool(one["named"]),
                    **{name: _finite(one[name]) for name in ("before", "after", "change", "low", "high")},
                )
                for one in event["shifts"]
            ],
            examples=[
                Example(
                    id=str(one["id"]),
                    before=printable(str(one["before"]))[:LONGEST],
                    after=printable(str(one["after"]))[:LONGEST],
                )
                for one in event["examples"][:EXAMPLES]
            ],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweredTwice:
    """One question as the version before answers it and as the new one does."""

    prompt: str
    before: str
    after: str


def opener(text: str) -> str:
    """The first word, without the marks around it."""
    words = printable(text).split(maxsplit=1)
    return words[0].strip(MARKS)[:_WORD] if words else ""


def card(learnt: Learnt | None, language: str = "") -> str:
    """`shorter (−38%), fewer lists (60% → 12%)`; empty where nothing is proved."""
    named = learnt.named if learnt else []
    return commas(language, *(_change(one, _figures(one, language), language) for one in named))


def account(learnt: Learnt | None, language: str = "") -> str:
    """The same as a sentence, with the intervals and what they rest on; empty where nothing is proved."""
    if learnt is None or not (named := learnt.named):
        return ""
    said = [
        _change(one, pauses(language, _figures(one, language), _interval(one, language)), language)
        for one in named
    ]
    return say(
        "changes_seen" if learnt.trained else "changes_apart",
        language,
        answers=learnt.answers,
        questions=learnt.questions,
        told=commas(language, *said),
    )


def drifted(learnt: Learnt | None, language: str = "") -> str:
    """A sentence that warns of another language, which the ratings do not ask for; empty: there is none."""
    drift = learnt.drift if learnt else None
    return say("language_drift", language, figures=_figures(drift, language)) if drift else ""


def shown(pairs: Sequence[AnsweredTwice], heading: str, version: str, language: str = "") -> list[str]:
    """Show answers before and after, one block a question, for a chat or 80 columns.

    Those that are the same are counted, not shown.

    Args:
        pairs: The questions with both answers.
        heading: The line above.
        version: What the newer one is called: `v7`.
        language: What the reader reads.

    Returns:
        The lines; none without pairs.
    """
    if not pairs:
        return []
    before, empty = say("before", language), say("no_answer", language)
    wide = max(len(before), len(version))
    changed = [(pair.prompt, *_apart(pair)) for pair in pairs if _line(pair.before) != _line(pair.after)]
    lines = [heading] if changed else []
    for prompt, old, new in changed:
        lines += [
            quoted(_short(prompt) or empty, language),
            f"  {before:{wide}}  {old or empty}",
            f"  {version:{wide}}  {new or empty}",
        ]
    same = len(pairs) - len(changed)
    return [*lines, say("unchanged", language, count=same)] if same else lines


def _change(one: Shift, figures: str, language: str) -> str:
    """More or less of a feature, with its figures."""
    key = f"changed_{one.feature}_{'less' if one.change < 0 else 'more'}"
    return say(key, language, word=one.word, figures=figures)


def _figures(one: Shift, language: str) -> str:
    if one.feature == LENGTH:
        return percent(one.change, language, signed=True)
    return f"{percent(one.before, language)} → {percent(one.after, language)}"


def _interval(one: Shift, language: str) -> str:
    """Of a length in percent of it, else in points."""
    if one.feature == LENGTH:
        low, high = (percent(bound, language, signed=True) for bound in (one.low, one.high))
        return say("interval_percent", language, low=low, high=high)
    low, high = (f"{100 * bound:+.0f}".replace("-", "−") for bound in (one.low, one.high))
    return say("interval_points", language, low=low, high=high)


def _finite(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError("a figure that is no number")
    return number


def _apart(pair: AnsweredTwice) -> tuple[str, str]:
    """Both answers in short, from shortly before where they part if that is far behind."""
    before, after = _line(pair.before), _line(pair.after)
    both = enumerate(zip(before, after, strict=False))
    same = next((at for at, (old, new) in both if old != new), min(len(before), len(after)))
    if same < _WIDE - 1:
        return _short(before), _short(after)
    start = same - _WIDE // 2
    return _short(f"…{before[start:]}"), _short(f"…{after[start:]}")


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= _WIDE else line[: _WIDE - 1] + "…"
