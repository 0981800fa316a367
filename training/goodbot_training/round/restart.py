# SPDX-License-Identifier: Apache-2.0
"""Whether a round starts from the base again: when what was learnt is liked less than nothing learnt.

Who changes their mind rates nearly everything bad that the newest version says. Few good answers are left
to learn from, and one round does not lead back. The base still varies: from there the same ratings
lead to what is liked now. The evidence is the owner's own: the mean reward of the newest version's answers
in this round lies below that of the base's answers ever trained on,

    m_base - m_now > 1.28 · √((1 - m_base²) / n_base + (1 - m_now²) / n_now)

one-sided at 90 %; 1 - m² is the variance of a reward of ±1, and no reward in [-1, 1] has more. `n` are
sums of weights, so a rater who is held to a share is held to it here. To each side one good and one bad
answer are added, or three bad ones in a row would have no variance at all.

Such a round learns from answers of a policy that is no more. Nearly all of them are bad: against their
own mean, or with their own ratio π_base / π_writer in front, each says next to nothing, and the base
comes out as it went in. So where the push against a bad answer ends by itself (`Variant.fades`), they count
as the base's own: the ratio starts at 1, and V is what the base's answers were worth, m_base. Without a
single better answer the round stalls as any other does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from goodbot.api.sentences import Reason, because

from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import TRAIN, Baseline, Job, RatedSample
from goodbot_training.objectives import Objective
from goodbot_training.objectives.mispo import VARIANTS, variant_of

_DEVIATIONS = 1.28


def prepare(job: Job) -> tuple[Job, tuple[Reason, ...]]:
    """The job with the base's rewards counted in its baseline, and without a parent if it starts afresh.

    That it does is what is told; nothing is told when it does not.
    """
    own = [item for item in job.items if item.version == 0 and item.split == TRAIN]
    n, mean = _mean(own)
    before = job.baseline
    total = before.base_n + n
    if n:
        mean = (before.base_n * before.base_mean + n * mean) / total
        job = replace(job, baseline=replace(before, base_n=total, base_mean=mean))
    if job.parent is None or not job.settings.start_over or not _worse(job):
        return job, ()
    return replace(job, parent=None, afresh=True), (because("check_afresh"),)


def advantages(
    job: Job, objective: Objective, rewards: Sequence[float], weights: Sequence[float]
) -> tuple[list[float], Baseline]:
    """The objective's own, or against the base's mean; and the baseline after the round."""
    own, after = objective.advantages(job.baseline, rewards, weights)
    if not _counts_as_own(job, rewards):
        return own, after
    value = job.baseline.base_mean
    return [w * (r - value) for r, w in zip(rewards, weights, strict=True)], after


def written_by_the_base(job: Job, rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
    """Rollouts whose ratio starts at 1, where they count as the base's own; else as they are."""
    if not _counts_as_own(job, [rollout.reward for rollout in rollouts if not rollout.demonstration]):
        return rollouts
    return [replace(row, sampling_logprobs=row.reference_logprobs) for row in rollouts]


def _counts_as_own(job: Job, rewards: Sequence[float]) -> bool:
    variant = VARIANTS.get(variant_of(job.settings.objective) or "")
    better = any(reward > job.baseline.base_mean for reward in rewards)
    return job.afresh and variant is not None and variant.fades and better


def _worse(job: Job) -> bool:
    newest = max((item.version or 0 for item in job.items), default=0)
    now, base = _mean(item for item in job.items if newest and item.version == newest), job.baseline
    if not now[0] or not base.base_n:
        return False
    mean, variance = _with_error(*now)
    base_mean, base_variance = _with_error(base.base_n, base.base_mean)
    return base_mean - mean > _DEVIATIONS * math.sqrt(variance + base_variance)


def _with_error(n: float, mean: float) -> tuple[float, float]:
    """The mean with one good and one bad answer more, and that mean's variance."""
    mean *= n / (n + 2)
    return mean, (1 - mean**2) / (n + 2)


def _mean(items: Iterable[RatedSample]) -> tuple[float, float]:
    """The sum of the weights and the weighted mean reward; 0 and 0 of nothing."""
    rated = [(item.weight, item.reward) for item in items]
    n = sum(weight for weight, _ in rated)
    return n, sum(weight * reward for weight, reward in rated) / n if n else 0.0
