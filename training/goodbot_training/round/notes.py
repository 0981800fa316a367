# SPDX-License-Identifier: Apache-2.0
"""What the notes of prompts come to, taught to the weights: context distillation.

Teacher and student are the policy that the round starts from, π_old; the teacher has the notes in its prompt,
as it answers now, the student does not. The teacher answers the round's questions anew, an answer each. So it
is what the notes *do* that is learnt, whatever somebody has rated, and each answer is one that the teacher
would give. Each is a rollout of its own beside the rated ones, with no reward, the student's prompt and

    d_t = note_weight · clip(T · (log π_old(a_t | x, notes, a_<t) - log π_old(a_t | x, a_<t)), -C, C)

of `objectives.hindsight`, times the weight of the notes: what would be said without them as well is not
taught. The first tokens count: there a style begins. An answer teaches no more than the best rating would.
Nothing of it is in checkpoints: a seed makes the same answers again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.noted import with_line
from goodbot.api.sampler import Sampled, SampleRequest, TokenizedTurn

from goodbot_training.backends.scoring import Tell, prompt_tokens, score
from goodbot_training.job.rated import Said
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import TRAIN, Job, RatedSample
from goodbot_training.round.hindsight import advantages

PORTION = 64
"""Answers sampled at once."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question of a rollout, without its notes."""

    rollout: Rollout
    item: RatedSample
    note: Said
    plain: Sequence[Message]


def taught(job: Job, item: RatedSample) -> Said | None:
    """What a round teaches of an item's notes; None: nothing."""
    if item.split != TRAIN or not (
        item.weight and job.settings.note_weight and job.settings.hindsight_weight
    ):
        return None
    return item.note if item.note and item.note.weight else None


def passes(job: Job, item: RatedSample) -> int:
    """How often an answer is made or read for its notes: sampled, read by the policy, and by the base."""
    return 2 + (job.parent is not None) if taught(job, item) else 0


def lengths(job: Job, known: Mapping[str, int]) -> list[int]:
    """Tokens of the answers that notes teach on these items, at most; `known` are those of the items."""
    most = job.settings.max_sequence_tokens
    return [
        min(most, known[item.id] + job.settings.gate_max_tokens)
        for item in job.items
        if item.id in known and taught(job, item)
    ]


def distil(
    job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout], tell: Tell | None = None
) -> list[Rollout]:
    """A rollout for each that trains and has notes, as far as its question can be asked.

    `tell` hears of what is made and read for it, about `passes`. The backend holds the job's parent adapter
    before and after.
    """
    asked = _asked(job, backend, rollouts)
    if not asked:
        return []
    both = zip(asked, _answers(job, backend, asked, tell), strict=True)
    answered = [(one, answer) for one, answer in both if answer.turn.response]
    turns = [
        TokenizedTurn(
            prompt=backend.tokenize(one.plain, "").prompt + answer.turn.prompt[len(answer.prompt) :],
            response=answer.turn.response,
        )
        for one, answer in answered
    ]
    heats = [one.rollout.temperature for one, _ in answered]
    budget = job.settings.tokens_per_forward
    own = job.parent is not None
    student = score(backend, turns, heats, adapter=own, budget=budget, tell=tell)
    base = score(backend, turns, heats, adapter=False, budget=budget, tell=tell) if own else student
    weight = job.settings.note_weight
    whole = replace(job.settings, hindsight_skip=0, hindsight_weight=weight * job.settings.hindsight_weight)
    found: list[Rollout] = []
    for (one, answer), turn, logprobs, reference in zip(answered, turns, student, base, strict=True):
        teacher = np.asarray(answer.own_logprobs[answer.answer_at :], np.float32)
        heat = one.rollout.temperature
        said = advantages(logprobs, teacher, whole, temperature=heat, reward=1.0)
        said *= np.float32(one.note.weight * weight)
        if np.isfinite(said).all() and np.isfinite(reference).all():
            row = replace(
                one.rollout,
                turn=turn,
                reward=0.0,
                rated=False,
                off_policy=False,
                sampling_logprobs=logprobs,
                reference_logprobs=reference,
                hindsight=said,
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
        note = taught(job, item)
        if note is None:
            continue
        plain = with_line(item.messages, "")
        sizes = [prompt_tokens(backend, messages) for messages in (plain, with_line(plain, note.text))]
        if all(0 < size < most for size in sizes):
            known = max(backend.tokenize(with_line(plain, note.text), "").prompt) < vocabulary
            found += [_Asked(rollout, item, note, plain)] if known else []
    return found


def _answers(job: Job, backend: TrainingBackend, asked: Sequence[_Asked], tell: Tell | None) -> list[Sampled]:
    """By the policy that the round starts from, with the notes in its prompts."""
    sampler = backend.sampler()
    if job.parent is not None:
        sampler.load_adapter(1, job.parent)
    sampler.activate(0 if job.parent is None else 1)
    requests = [
        SampleRequest(
            messages=with_line(one.plain, one.note.text),
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
        portion = sampler.sample_many(requests[start : start + PORTION])
        answers += portion
        if tell is not None:
            tell(len(portion))
    backend.load_adapter(job.parent)
    return answers
