# SPDX-License-Identifier: Apache-2.0
"""Does a candidate need a note still? It is tried without, on questions that this round has not trained on.

What a note asks for is said in any language, and no rule knows it. But the base model tells: it reads an
answer y with the note in the prompt, and without it, and where

    LR(y) = log π_base(y | x, note) - log π_base(y | x) > 0

the answer is rather one that follows the note: of two known distributions nothing tells better. With p the
part of such answers among the base's own with the note, p_0 of those without, q and q_0 of the candidate's,

    the note does something:      p - p_0      > LEAST         else nothing can be told
    the candidate has learnt it:  q_0          > KEPT · max(p, q)

each beyond the error of the figures, one-sided at 90 %. Then the note retires. To q it is compared so that
nobody loses by that, to p so that a candidate that does not heed the note any more has not learnt it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from goodbot.api.backend import TrainingBackend
from goodbot.api.sampler import Sampled, Sampler, SampleRequest, TokenizedTurn

from goodbot_training.backends.scoring import Tell, prompt_tokens, score
from goodbot_training.job.trials import NotePrompt, NoteTrial
from goodbot_training.job.types import Job
from goodbot_training.round import telling

KEPT = 0.9
"""The part of what the note does that must be there without it."""
LEAST = 0.2
"""The part of the answers that the note must change."""
_QUESTIONS = 3
"""Fewer say nothing of others."""
_DEVIATIONS = 1.28
ARMS = 4
"""The base and the candidate, each with the note and without."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Parts of `answers` that follow the note: p, p_0, q and q_0."""

    answers: int
    noted: float
    plain: float
    learnt_noted: float = 0.0
    learnt: float = 0.0

    @property
    def works(self) -> bool:
        """Whether the note does something to the base."""
        return self._beyond(self.noted, 1.0, self.plain, LEAST)

    @property
    def retires(self) -> bool:
        """Whether the candidate answers without the note as it, or the base, does with it."""
        return self.works and self._beyond(self.learnt, KEPT, max(self.noted, self.learnt_noted), 0.0)

    def _beyond(self, one: float, times: float, other: float, least: float) -> bool:
        error = math.sqrt(self._variance(one) + times**2 * self._variance(other))
        return one - times * other - least > _DEVIATIONS * error

    def _variance(self, rate: float) -> float:
        """Of a rate, with one answer more of each kind: four of four are no certainty."""
        smoothed = (rate * self.answers + 1) / (self.answers + 2)
        return smoothed * (1 - smoothed) / self.answers


def try_without(job: Job, backend: TrainingBackend, candidate: Path, emit: telling.Emit) -> None:
    """Try each note of the job and tell which retire, in an event `notes`; nothing where there are none.

    Afterwards the backend holds whichever adapter.
    """
    count = job.settings.note_answers
    trials = [one for one in (_readable(job, backend, trial) for trial in job.trials) if one is not None]
    if not trials or not count:
        return
    sampler = backend.sampler()
    sampler.load_adapter(1, candidate)
    tell = telling.counter(emit, "notes", ARMS * count * len(trials))
    told: list[dict[str, float | int | bool]] = []
    for trial in trials:
        rates = _rates(job, backend, sampler, trial, tell)
        told.append(
            {
                "id": trial.id,
                "retired": rates.retires,
                "answers": rates.answers,
                "noted": round(rates.noted, 4),
                "plain": round(rates.plain, 4),
                "learnt_noted": round(rates.learnt_noted, 4),
                "learnt": round(rates.learnt, 4),
            }
        )
    emit({"event": "notes", "notes": told})


def _readable(job: Job, backend: TrainingBackend, trial: NoteTrial) -> NoteTrial | None:
    """With the questions that can be asked; None where these are too few."""
    most = job.settings.max_sequence_tokens - job.settings.gate_max_tokens

    def fits(question: NotePrompt) -> bool:
        return all(0 < prompt_tokens(backend, one) < most for one in (question.noted, question.without))

    questions = tuple(question for question in trial.questions if fits(question))
    return NoteTrial(id=trial.id, questions=questions) if len(questions) >= _QUESTIONS else None


def _rates(job: Job, backend: TrainingBackend, sampler: Sampler, trial: NoteTrial, tell: Tell) -> Rates:
    count = job.settings.note_answers
    asked = [trial.questions[n % len(trial.questions)] for n in range(count)]

    def rate(version: int, *, noted: bool) -> float:
        found = _answers(job, sampler, version, asked, noted=noted)
        tell(count)
        return fmean(ratio > 0 for ratio in _ratios(job, backend, asked, found))

    rates = Rates(count, rate(0, noted=True), rate(0, noted=False))
    if not rates.works:
        tell(2 * count)
        return rates
    return Rates(count, rates.noted, rates.plain, rate(1, noted=True), rate(1, noted=False))


def _answers(
    job: Job, sampler: Sampler, version: int, asked: Sequence[NotePrompt], *, noted: bool
) -> list[Sampled]:
    sampler.activate(version)
    return sampler.sample_many(
        [
            SampleRequest(
                messages=question.noted if noted else question.without,
                max_tokens=job.settings.gate_max_tokens,
                temperature=job.temperature,
                thinking=None,
                filters=job.filters,
                seed=number,
            )
            for number, question in enumerate(asked)
        ]
    )


def _ratios(
    job: Job, backend: TrainingBackend, asked: Sequence[NotePrompt], answers: Sequence[Sampled]
) -> list[float]:
    """LR of each answer, in nats."""
    read: list[list[float]] = []
    heat = [job.temperature] * len(answers)
    for noted in (True, False):
        turns = [
            TokenizedTurn(
                prompt=backend.tokenize(question.noted if noted else question.without, "").prompt
                + answer.turn.prompt[len(answer.prompt) :],
                response=answer.turn.response,
            )
            for question, answer in zip(asked, answers, strict=True)
        ]
        rows = score(backend, turns, heat, adapter=False, budget=job.settings.tokens_per_forward)
        read.append([float(row.sum()) for row in rows])
    return [there - here for there, here in zip(*read, strict=True)]
