# SPDX-License-Identifier: Apache-2.0
"""What the gate counts in sampled answers, and what a count of less rare tokens would say.

The gate calls an answer foreign that holds a token which the base gives little chance. Here its count is
re-enacted on saved answers, so that a candidate's lowest tokens can be counted under other limits as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.sampler import Sampled, TokenizedTurn
from goodbot_training.backends.scoring import score
from goodbot_training.gate.answers import compare_answers
from goodbot_training.gate.decide import foreign_allowed
from goodbot_training.gate.measure import PORTION
from goodbot_training.gate.retention import foreign, foreign_below
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import is_correct, style_of

from tests.learning.exam import TOKENS_PER_FORWARD

if TYPE_CHECKING:
    from goodbot.api.step import Floats

UNDER = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Chances under which answers are counted; `GATE` is the gate's, the first was."""
GATE = UNDER.index(0.1)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One sampled answer before a judge without noise."""

    low: float
    """The base's log-prob of that token of it which it expects least."""
    right: bool
    liked: bool


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one policy answers: to the round's own prompts, as the gate asks, and to held-out questions."""

    known: bool
    """Whether its count of foreign answers passes the gate."""
    alike: bool
    """Whether the gate refuses it for the same answer to different questions."""
    under: Sequence[int]
    """How many of its answers to the round's own prompts hold a token under each of `UNDER`."""
    right: float
    """Share of right answers to the round's own prompts."""
    held_out: float
    """Share of right answers to held-out questions."""
    liked: float
    """Share of answers to held-out questions that are in the liked style."""

    @property
    def passed(self) -> bool:
        """By those two counts."""
        return self.known and not self.alike


def judged(
    questions: Sequence[FactQuestion],
    answers: Sequence[Sampled],
    like: str,
    backend: TrainingBackend | None = None,
) -> list[Answer]:
    """Each answer judged. With a backend, its base reads them; else they are the base's own."""
    if backend is None:
        read = [np.asarray(answer.logprobs, np.float32) for answer in answers]
    else:
        turns = [TokenizedTurn(prompt=answer.prompt, response=answer.tokens) for answer in answers]
        heat = [TEMPERATURE] * len(turns)
        read = score(backend, turns, heat, adapter=False, budget=TOKENS_PER_FORWARD)
    return [
        Answer(
            low=float(min(row, default=0.0)),
            right=is_correct(question, answer.text),
            liked=style_of(answer.text) == like,
        )
        for question, answer, row in zip(questions, answers, read, strict=True)
    ]


def seen(
    base: Sequence[Answer], own: Sequence[Answer], held_out: Sequence[Answer], alike: bool = False
) -> Seen:
    """The figures of a policy; `base` are the base's answers to the same prompts as `own`."""
    return Seen(
        known=passes(base, own),
        alike=alike,
        under=[sum(answer.low < math.log(chance) for answer in own) for chance in UNDER],
        right=sum(answer.right for answer in own) / len(own),
        held_out=sum(answer.right for answer in held_out) / len(held_out),
        liked=sum(answer.liked for answer in held_out) / len(held_out),
    )


def passes(base: Sequence[Answer], candidate: Sequence[Answer]) -> bool:
    """The gate's count of foreign answers, portion after portion, as its `measure` takes it."""
    settings = TrainingSettings()
    read, asked = PORTION, len(candidate)
    for count in range(PORTION, asked + 1, PORTION):
        strange, usual = _foreign(base[:read], candidate[:count])
        if read < count and (usual or strange > foreign_allowed(settings, usual)):
            read = count
            strange, usual = _foreign(base[:read], candidate[:count])
        more, allowed = strange - usual, foreign_allowed(settings, usual)
        if more > allowed:
            return False
        if 4 * more <= allowed and 2 * count >= asked:
            return True
    return True


def alike(base: Sequence[Sampled], candidate: Sequence[Sampled], backend: TrainingBackend) -> bool:
    """Whether so few of the candidate's answers are their question's own that the gate refuses it."""

    def reads(turns: Sequence[TokenizedTurn]) -> list[Floats]:
        heat = [TEMPERATURE] * len(turns)
        return score(backend, turns, heat, adapter=False, budget=TOKENS_PER_FORWARD)

    found = compare_answers(base, candidate, reads)
    least = TrainingSettings().gate_min_distinct
    return found.get("distinct_after", 1.0) < least * found.get("distinct_before", 1.0)


def _foreign(base: Sequence[Answer], candidate: Sequence[Answer]) -> tuple[int, int]:
    own, other = ([np.array([answer.low]) for answer in side] for side in (base, candidate))
    below = foreign_below(own)
    return foreign(other, below), foreign(own, below)
