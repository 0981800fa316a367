# SPDX-License-Identifier: Apache-2.0
"""A round that teaches one part of a sum: what the shared adapter does stands still under a scope's own part.

The policy before the round is the sum of both; so is the candidate, which a server takes as one adapter. Its
own part may have been trained on another shared adapter than the one that stands there now.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from goodbot.base import trees

from goodbot_training.job.types import Job, data_error

_START = ".start"


@contextmanager
def summed(job: Job) -> Generator[Job]:
    """The job with the sum that it goes on from as its parent; one without a shared adapter as it is.

    Such a round never starts over from the base: that would let go of what others have taught. Raises
    AdapterError.
    """
    if job.frozen is None and job.rests_on is None:
        yield job
        return
    from goodbot_training.backends import adapters, sums

    settled = replace(job, settings=replace(job.settings, start_over=False))
    start = job.output / _START
    try:
        if job.parent is not None and job.rests_on == job.frozen:
            yield settled
            return
        if job.parent is not None:
            weights = sums.rebased(job.parent, job.rests_on, job.frozen)
        elif job.frozen is not None:
            weights = sums.begun(job.frozen, rank=job.settings.rank, alpha=job.settings.alpha, seed=job.seed)
        else:
            raise data_error("rests_on says of what the parent is, and there is no parent.")
        adapters.write_adapter(start, weights)
        yield replace(settled, parent=start)
    finally:
        trees.remove(start, ignore_errors=True)
