# SPDX-License-Identifier: Apache-2.0
"""Rollouts and advantages → the batches of a round: shuffled by the job's seed, padded, finite.

One epoch shows every rollout once; epochs follow one another without a gap, so a batch may hold
the end of one and the start of the next. The same job gives the same batches on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice

import numpy as np
from goodbot.api.backend import TrainingBatch

from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import TrainingSettings


def planned_steps(rollouts: int, settings: TrainingSettings) -> int:
    """Optimizer steps of a round: `steps`, but no more than `max_passes` over it and no less than one."""
    least, most = (-(-n * rollouts // settings.batch_size) for n in (1, settings.max_passes))
    return max(least, min(settings.steps, most))


def order(rollouts: int, *, seed: int) -> Iterator[int]:
    """Indices of rollouts without end: a fresh permutation an epoch."""
    if rollouts < 1:
        return
    for epoch in count():
        yield from np.random.default_rng([seed, epoch]).permutation(rollouts).tolist()


def normalizer(rollouts: Sequence[Rollout], settings: TrainingSettings) -> float:
    """N: what every token sum of a batch is divided by; mean response length · batch size."""
    tokens = sum(len(rollout.turn.response) for rollout in rollouts)
    return settings.batch_size * tokens / len(rollouts)


def make_batches(
    rollouts: Sequence[Rollout], advantages: Sequence[float], settings: TrainingSettings, *, seed: int
) -> Iterator[TrainingBatch]:
    """The round's batches, `planned_steps` of them, each of `batch_size` rollouts."""
    if not rollouts:
        return
    divisor = normalizer(rollouts, settings)
    indices = order(len(rollouts), seed=seed)
    for _ in range(planned_steps(len(rollouts), settings)):
        chosen = list(islice(indices, settings.batch_size))
        yield pad([rollouts[i] for i in chosen], [advantages[i] for i in chosen], divisor)


def pad(rollouts: Sequence[Rollout], advantages: Sequence[float], divisor: float) -> TrainingBatch:
    """One batch; short responses are padded on the right with zeros, which the mask hides."""
    width = max(len(rollout.turn.response) for rollout in rollouts)
    sampling = np.zeros((len(rollouts), width), np.float32)
    reference, mask, words = (np.zeros_like(sampling) for _ in range(3))
    for row, rollout in enumerate(rollouts):
        length = len(rollout.turn.response)
        if rollout.hindsight is not None:
            words[row, :length] = rollout.hindsight
        sampling[row, :length] = rollout.sampling_logprobs
        reference[row, :length] = rollout.reference_logprobs
        mask[row, :length] = 1.0
    return TrainingBatch(
        sequences=tuple(rollout.turn for rollout in rollouts),
        temperature=tuple(rollout.temperature for rollout in rollouts),
        sampling_logprobs=sampling,
        reference_logprobs=reference,
        advantages=np.asarray(advantages, np.float32),
        mask=mask,
        normalizer=divisor,
        hindsight=words if any(rollout.hindsight is not None for rollout in rollouts) else None,
    )
