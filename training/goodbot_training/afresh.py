"""Whether a round starts from the base again: when what was learnt is liked less than nothing learnt.

Who changes their mind rates nearly everything bad that the newest version says. Few good answers are left
to learn from, and one round does not lead back. The base still varies: from there the same ratings
lead to what is liked now. The evidence is the owner's own: the mean reward of the newest version's answers
in this round lies below that of the base's answers ever trained on,

    m_base - m_now > 1.28 · √((1 - m_base²) / n_base + (1 - m_now²) / n_now)

one-sided at 90 %; 1 - m² is the variance of a reward of ±1, and no reward in [-1, 1] has more. `n` are
sums of weights, so a rater who is held to a share is held to it here. To each side one good and one bad
answer are added, or three bad ones in a row would have no variance at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from goodbot_training.types import TRAIN, Item, Job

_DEVIATIONS = 1.28
_TOLD = (
    "The newest version's answers were liked less than the base model's, so this one starts from "
    "the base again. "
)


def prepare(job: Job) -> tuple[Job, str]:
    """The job with the base's rewards counted in its baseline, and without a parent if it starts afresh.

    The sentence says so; it is empty when nothing is said.
    """
    own = [item for item in job.items if item.version == 0 and item.split == TRAIN]
    n, mean = _mean(own)
    before = job.baseline
    total = before.base_n + n
    if n:
        mean = (before.base_n * before.base_mean + n * mean) / total
        job = replace(job, baseline=replace(before, base_n=total, base_mean=mean))
    if job.parent is None or not job.settings.start_over or not _worse(job):
        return job, ""
    return replace(job, parent=None), _TOLD


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


def _mean(items: Iterable[Item]) -> tuple[float, float]:
    """The sum of the weights and the weighted mean reward; 0 and 0 of nothing."""
    rated = [(item.weight, item.reward) for item in items]
    n = sum(weight for weight, _ in rated)
    return n, sum(weight * reward for weight, reward in rated) / n if n else 0.0
