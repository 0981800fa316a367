# SPDX-License-Identifier: Apache-2.0
"""How much the gate will sample, and what one portion of it costs.

It stops as soon as more answers would not change its mind, which nobody knows beforehand: with a
portion of each, where the candidate is beyond help; usually with half of the candidate's and one
portion of the base's; at the latest with all. What passes is then laid beside the version before it, and
is tried without the notes that it was taught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.sampler import Sampled, SampleRequest

from goodbot_training.gate.measure import PORTION, make_requests
from goodbot_training.gate.retention import foreign, foreign_below
from goodbot_training.job.types import Job, TrainingSettings
from goodbot_training.planning.cost import Cost, LinearCost, Stopwatch, total
from goodbot_training.round.retiring import ARMS

_SECONDS = 1.0
"""CPU seconds of sampling in the miniature: after so many no other group is asked."""
_GROUPS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingCost:
    """What `PORTION` answers cost to sample, and how long they come out."""

    portion: Cost
    tokens: int
    """Of their prompts and of the answers to them."""
    rare: bool
    """See `portions`."""


def portions(settings: TrainingSettings, *, rare: bool = False, tried: int = 0) -> tuple[float, float, float]:
    """How many portions of the candidate, of the base and of the version before: least, usual, most.

    `rare`: the base's own answers hold what it would seldom say, so that chance has a part in the
    count, and the base is asked as often as the candidate. `tried`: so many notes are.
    """
    all_ = settings.gate_anchors / PORTION
    half = min(all_, ceil(all_ / 2))
    one = min(all_, 1.0)
    compared = 2 * one  # what has passed, beside the version before it: `goodbot_training.learnt`
    passed = compared + ARMS * settings.note_answers * tried / PORTION
    return 2 * one, half + (half if rare else one) + passed, 2 * all_ + passed


def sample_some(job: Job, backend: TrainingBackend, watch: Stopwatch) -> SamplingCost:
    """Sample a part of the first portion from the base."""
    from goodbot_training.backends.generating import together

    temperature = job.temperature
    count = min(PORTION, job.settings.gate_anchors)
    requests = make_requests(job, backend, temperature, count)
    lengths = [len(backend.tokenize(request.messages, "").prompt) for request in requests]
    groups = [
        [requests[i] for i in members]
        for members in together(lengths, job.settings.gate_max_tokens, spread=None)
    ]
    sampler = backend.sampler()
    sampler.activate(0)
    sampler.sample_many(requests[:1])  # the first one prepares what the others find
    watch.lap()
    found: list[tuple[float, Cost]] = []
    rows: list[Sampled] = []
    spent = 0.0
    for group in _spread(sorted(groups, key=len)):
        sampled = sampler.sample_many(group)
        cost = watch.lap()
        found.append((float(len(group)), cost))
        rows += sampled
        spent += cost.cpu
        if spent > _SECONDS:
            break
    line = LinearCost.through(found)
    scale = PORTION / len(requests)
    own = [np.asarray(row.own_logprobs[row.answer_at :], np.float32) for row in rows]
    tokens = sum(len(row.prompt) + len(row.tokens) for row in rows)
    return SamplingCost(
        portion=total(line.at(len(group)) for group in groups) * scale,
        tokens=round(PORTION * tokens / len(rows)),
        rare=foreign(own, foreign_below(own)) > 0,
    )


def _spread(groups: Sequence[list[SampleRequest]]) -> list[list[SampleRequest]]:
    """A few of all sizes, the middle ones first; with a single one, also a part of it."""
    if len(groups) == 1:
        [group] = groups
        return [group[: max(1, len(group) // 4)], group]
    count = min(_GROUPS, len(groups))
    chosen = [groups[round(i * (len(groups) - 1) / (count - 1))] for i in range(count)]
    middle = (count - 1) / 2
    places = sorted(range(count), key=lambda i: abs(i - middle))
    return [chosen[place] for place in places]
