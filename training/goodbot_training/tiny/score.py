# SPDX-License-Identifier: Apache-2.0
"""Judging a set of answers: the share in the liked style with its interval, and the facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from goodbot.base.intervals import wilson

from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import is_correct, style_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Shares in [0, 1]; `liked_low` to `liked_high` is the 95 % Wilson interval of `liked_share`."""

    liked_share: float
    liked_low: float
    liked_high: float
    facts: float
    answers: int

    def as_json(self) -> dict[str, float]:
        """Rounded to four places."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def score(questions: Sequence[FactQuestion], answers: Sequence[str], like: str) -> Score:
    """Judge one answer a question, in order."""
    pairs = list(zip(questions, answers, strict=True))
    liked = sum(style_of(answer) == like for answer in answers)
    low, high = wilson(liked, len(pairs))
    return Score(
        liked_share=liked / len(pairs),
        liked_low=low,
        liked_high=high,
        facts=sum(is_correct(question, answer) for question, answer in pairs) / len(pairs),
        answers=len(pairs),
    )
