# SPDX-License-Identifier: Apache-2.0
"""What a round would cost, before it is started: `python -m goodbot_training.process.worker plan`.

A miniature of the round is timed in a child of its own, whose weights nobody keeps. Where one optimizer
step would take longer than `SLOW`, the model is not even loaded, and the operations are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, cast

from goodbot.api.backend import TrainingBackend

from goodbot_training.job.types import HELD_OUT, Job, data_error
from goodbot_training.memory.fit import Memory
from goodbot_training.objectives import make_objective
from goodbot_training.planning.cost import RoundEstimate
from goodbot_training.planning.formula import count, step_seconds
from goodbot_training.planning.miniature import rehearse
from goodbot_training.round.restart import prepare

__all__ = ["RoundEstimate", "run_plan"]

SLOW = 1.0
"""Seconds of one optimizer step from which on the operations are counted instead."""


def run_plan(job: Job, backend: TrainingBackend, emit: Callable[[dict[str, Any]], None]) -> RoundEstimate:
    """Estimate a job and emit it as the one event `done`. `job.output` is a folder to throw away.

    Raises TrainingError as the round itself would, before its first step.
    """
    make_objective(job.settings)
    if all(item.split == HELD_OUT or not item.weight for item in job.items):
        raise data_error("There is no rated turn to train on.")
    job, afresh = prepare(job)
    memory = Memory.of(job, backend.name)
    job = memory.within(job)
    shape = memory.model
    if shape is not None and step_seconds(job, shape, backend.name) > SLOW:
        estimate = count(job, shape, backend.name, memory)
    else:
        estimate = rehearse(job, backend, memory)
    told = {**_told(asdict(estimate)), "start_over": bool(afresh)}
    emit({"event": "done", "estimate": told})
    return estimate


def _told(values: dict[str, Any]) -> dict[str, Any]:
    """Without digits that mean nothing."""
    return {
        name: _told(cast("dict[str, Any]", value))
        if isinstance(value, dict)
        else float(f"{value:.4g}")
        if isinstance(value, float)
        else value
        for name, value in values.items()
    }
