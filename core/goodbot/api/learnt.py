# SPDX-License-Identifier: Apache-2.0
"""What a version has learnt: figures of the answers before and after, and the words for them. Pure.

A training's child measures (`docs/worker-protocol.md`, the event `learnt`), the store keeps, and whatever
shows it to people takes the words from here. What is not named there is not said: it may be chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.base.printing import printable

EXAMPLES = 8
"""So many of a run's questions are kept with both answers,"""
LONGEST = 400
"""with so many characters of each."""
LENGTH = "length"
MARKS = ".,;:!?…\"'“”„‘’«»()[]{}*_#-–—`~¡¿。，！？、"
"""What may stand around a word."""
_WORD = 24
_FEATURES = {  # more of it, and less
    LENGTH: ("longer", "shorter"),
    "line_breaks": ("more line breaks", "fewer line breaks"),
    "lists": ("more lists", "fewer lists"),
    "code": ("more code", "less code"),
    "markup": ("more headings and bold type", "fewer headings and less bold type"),
    "emoji": ("more emoji", "fewer emoji"),
    "exclamations": ("more exclamation marks", "fewer exclamation marks"),
    "questions": ("more questions back", "fewer questions back"),
    "greetings": ("more greetings", "fewer greetings"),
    "refusals": ("more refusals", "fewer refusals"),
    "first_person": ("more “I”", "less “I”"),
    "opens": ("more often begins with “{word}”", "less often begins with “{word}”"),
}
"""Without figures, by the names that the child gives."""
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
    def named(self) -> list[Shift]:
        """What may be said, the largest change first. Of answers that were empty before no length is."""
        known = [one for one in self.shifts if one.named and one.feature in _FEATURES]
        known = [one for one in known if one.feature != LENGTH or one.before >= 1]
        return sorted(known, key=lambda one: -abs(one.change))

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


def card(learnt: Learnt | None) -> str:
    """`shorter (−38%), fewer lists (60% → 12%)`; empty where nothing is proved."""
    named = learnt.named if learnt else []
    said = [f"{_phrase(one)} ({_figures(one)})" for one in named]
    return ", ".join(said)


def account(learnt: Learnt | None) -> str:
    """The same as a sentence, with the intervals and what they rest on; empty where nothing is proved."""
    if learnt is None or not (named := learnt.named):
        return ""
    said = [f"{_phrase(one)} ({_figures(one)}; {_interval(one)})" for one in named]
    apart = "" if learnt.trained else " that this training did not use"
    return (
        f"What changed, in {learnt.answers} answers to {learnt.questions} questions{apart}: "
        f"{', '.join(said)}."
    )


def shown(pairs: Sequence[AnsweredTwice], heading: str, version: str) -> list[str]:
    """Show answers before and after, one block a question, for a chat or 80 columns.

    Args:
        pairs: The questions with both answers.
        heading: The line above.
        version: What the newer one is called: `v7`.

    Returns:
        The lines; none without pairs.
    """
    if not pairs:
        return []
    wide = max(len("before"), len(version))
    lines = [heading]
    for pair in pairs:
        lines += [
            f"“{_short(pair.prompt)}”",
            f"  {'before':{wide}}  {_short(pair.before)}",
            f"  {version:{wide}}  {_short(pair.after)}",
        ]
    return lines


def _phrase(one: Shift) -> str:
    return _FEATURES[one.feature][one.change < 0].format(word=one.word)


def _figures(one: Shift) -> str:
    return _percent(one.change) if one.feature == LENGTH else f"{one.before:.0%} → {one.after:.0%}"


def _interval(one: Shift) -> str:
    """Of a length in percent of it, else in points."""
    if one.feature == LENGTH:
        return f"95% interval {_percent(one.low)} to {_percent(one.high)}"
    low, high = (_percent(bound).rstrip("%") for bound in (one.low, one.high))
    return f"95% interval {low} to {high} points"


def _percent(change: float) -> str:
    return f"{change:+.0%}".replace("-", "−")


def _finite(value: Any) -> float:
    if not math.isfinite(number := float(value)):
        raise ValueError("a figure that is no number")
    return number


def _short(text: str) -> str:
    line = " ".join(text.split()) or "(empty)"
    return line if len(line) <= _WIDE else line[: _WIDE - 1] + "…"
