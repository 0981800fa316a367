# SPDX-License-Identifier: Apache-2.0
"""What the notes of prompts come to, taught to the weights: context distillation.

Teacher and student are the policy that the round starts from, π_old; the teacher has the notes in its prompt,
as it answers now, the student does not. The teacher answers the round's questions anew, an answer each. So it
is what the notes *do* that is learnt, whatever somebody has rated, and each answer is one that the teacher
would give. Each is a rollout of its own beside the rated ones, with no reward, the student's prompt and

    d_t = note_weight · clip(log π_old(a_t | x, notes, a_<t) - log π_old(a_t | x, a_<t), -C, C)

of `objectives.hindsight`, times the weight of the answer that was rated: what would be said without the notes
as well is not taught. Nothing of it is in checkpoints: a seed makes the same answers again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.noted import with_line
from goodbot.api.sampler import Sampled, SampleRequest, TokenizedTurn

from goodbot_training.process.types import TRAIN, Job, RatedSample
from goodbot_training.round.rollouts import Rollout, prompt_tokens, score

PORTION = 64
"""Answers sampled at once."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question of a rollout, without its notes."""

    rollout: Rollout
    item: RatedSample
    plain: Sequence[Message]


def distil(job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """A rollout for each that trains and has notes, as far as its question can be asked.

    The backend holds the job's parent adapter before and after.
    """
    asked = _asked(job, backend, rollouts) if job.settings.note_weight else []
    if not asked:
        return []
    both = zip(asked, _answers(job, backend, asked), strict=True)
    answered = [(one, answer) for one, answer in both if answer.turn.response]
    turns = [
        TokenizedTurn(
            prompt=backend.tokenize(one.plain, "").prompt + answer.turn.prompt[len(answer.prompt) :],
            response=answer.turn.response,
        )
        for one, answer in answered
    ]
    heat = [one.rollout.temperature for one, _ in answered]
    budget = job.settings.tokens_per_forward
    student = score(backend, turns, heat, adapter=job.parent is not None, budget=budget)
    base = score(backend, turns, heat, adapter=False, budget=budget) if job.parent is not None else student
    bound, weight = job.settings.hindsight_clip, job.settings.note_weight
    found: list[Rollout] = []
    for (one, answer), turn, own, reference in zip(answered, turns, student, base, strict=True):
        teacher = np.asarray(answer.own_logprobs[answer.answer_at :], np.float32)
        taught = one.rollout.weight * weight * np.clip(teacher - own, -bound, bound)
        if np.isfinite(taught).all() and np.isfinite(reference).all():
            row = replace(
                one.rollout,
                turn=turn,
                reward=0.0,
                rated=False,
                off_policy=False,
                sampling_logprobs=own,
                reference_logprobs=reference,
                hindsight=taught.astype(np.float32),
            )
            found.append(row)
    return found


def _asked(job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout]) -> list[_Asked]:
    items = {item.id: item for item in job.items}
    vocabulary = getattr(backend, "vocabulary", math.inf)  # a backend of a plugin need not tell
    most = job.settings.max_sequence_tokens - job.settings.gate_max_tokens
    found: list[_Asked] = []
    for rollout in rollouts:
        item = items[rollout.id]
        if not item.note or rollout.split != TRAIN or not rollout.weight:
            continue
        plain = with_line(item.messages, "")
        sizes = [prompt_tokens(backend, messages) for messages in (plain, with_line(plain, item.note))]
        if all(0 < size < most for size in sizes):
            known = max(backend.tokenize(with_line(plain, item.note), "").prompt) < vocabulary
            found += [_Asked(rollout, item, plain)] if known else []
    return found


def _answers(job: Job, backend: TrainingBackend, asked: Sequence[_Asked]) -> list[Sampled]:
    """By the policy that the round starts from, with the notes in its prompts."""
    sampler = backend.sampler()
    if job.parent is not None:
        sampler.load_adapter(1, job.parent)
    sampler.activate(0 if job.parent is None else 1)
    requests = [
        SampleRequest(
            messages=with_line(one.plain, one.item.note),
            max_tokens=job.settings.gate_max_tokens,
            temperature=one.item.temperature,
            seed=job.seed + number,
            thinking=None,
            filters=one.item.filters,
        )
        for number, one in enumerate(asked)
    ]
    answers: list[Sampled] = []
    for start in range(0, len(requests), PORTION):
        answers += sampler.sample_many(requests[start : start + PORTION])
    backend.load_adapter(job.parent)
    return answers
