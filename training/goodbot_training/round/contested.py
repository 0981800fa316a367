# SPDX-License-Identifier: Apache-2.0
"""A round in which somebody is outvoted: what they say weighs nothing, and it goes less of the way."""

from __future__ import annotations

from dataclasses import replace

from goodbot.api.sentences import Reason, because

from goodbot_training.job.types import TRAIN, Job


def unheard(job: Job) -> int:
    """Answers that the round would train on, but for who rated them."""
    return sum(item.split == TRAIN and not item.weight for item in job.rated)


def settled(job: Job) -> tuple[Job, float]:
    """The job with the strength that it goes at, and the part that this is of a round's in which nobody is
    outvoted."""
    usual = job.settings.strength
    strength = min(usual, job.settings.contested_strength) if unheard(job) else usual
    return replace(job, settings=replace(job.settings, strength=strength)), strength / usual


def told(count: int, share: float) -> tuple[Reason, ...]:
    """Whose ratings were left out, and how far of the usual way the round goes for it; or nothing."""
    unheard = (because("check_unheard", count=count),) if count else ()
    return (*unheard, because("check_share", share=share)) if share < 1 else unheard
