# SPDX-License-Identifier: Apache-2.0
"""What the reward model predicts: the contract between the child that computes it and whoever shows it.

It looks on. Nothing here is a label or a reward, and no training takes any of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FEATURE = "reward_model"
"""The section `[features.reward_model]` switches it on."""
LEAST = 200
"""Rated answers below which nothing is predicted."""
BINS = 5
_FAR = 0.8
"""A rating that was expected with a fifth of the chance or less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationBin:
    """A fifth of the rated answers, by what was predicted of them without knowing their ratings."""

    answers: int
    expected: float
    """The mean of what was predicted, from 0 to 1;"""
    good: int
    """so many were rated good."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedAnswer:
    """What is predicted of one answer."""

    id: str
    chance: float
    """How likely a good rating is, from 0 to 1. Of a rated one: without all answers to the same question."""
    good: bool | None
    """How it was rated then; None: not at all."""
    odd: bool = False
    """It is unlike all the other answers."""

    @property
    def doubtful(self) -> bool:
        """Its rating is far from what is predicted: it may be a slip."""
        return self.good is not None and abs(self.good - self.chance) >= _FAR


@dataclass(frozen=True, kw_only=True, slots=True)
class Predicted:
    """How well the ratings of answers can be predicted from the model's states, and what is predicted."""

    answers: int
    """Rated ones that it was tried on;"""
    good: int
    """so many of them were rated good."""
    left_out: int
    """Answers of which the model has no states that can be used."""
    questions: int
    """So many groups of answers were kept together: none is in what was learnt and in what was predicted."""
    by_person: bool
    """Whether all answers to one person are in one group, too: else only those to the same question."""
    auc: float
    """How often a good answer is ranked before a bad one: 0.5 is chance, 1 is always;"""
    low: float
    """its 99 % interval."""
    high: float
    bins: Sequence[CalibrationBin] = ()
    said: Sequence[PredictedAnswer] = ()
    """Empty where it is no better than chance."""
    at: float = 0.0
    """When it was computed, seconds since the epoch."""

    @property
    def tells(self) -> bool:
        """Whether it is better than chance. Where it is not, it says nothing of any answer."""
        return self.low > 0.5

    @classmethod
    def parse(cls, raw: Mapping[str, Any], at: float = 0.0) -> Predicted:
        """Read what the child said. Raises ValueError, KeyError or TypeError for what is none."""
        auc, low, high = (_share(raw[name]) for name in ("auc", "low", "high"))
        return cls(
            **{name: int(raw[name]) for name in ("answers", "good", "left_out", "questions")},
            by_person=bool(raw["by_person"]),
            auc=auc,
            low=low,
            high=high,
            bins=[
                CalibrationBin(
                    answers=int(one["answers"]), expected=_share(one["expected"]), good=int(one["good"])
                )
                for one in raw["bins"][:BINS]
            ],
            said=[
                PredictedAnswer(
                    id=str(one["id"]),
                    chance=_share(one["chance"]),
                    good=None if one["good"] is None else bool(one["good"]),
                    odd=bool(one["odd"]),
                )
                for one in raw["said"]
            ]
            if low > 0.5
            else [],
            at=at,
        )


def _share(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or not 0 <= number <= 1:
        raise ValueError("a share is from 0 to 1")
    return number
