"""One training round, top to bottom: load → rollouts → advantages → train → gate."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from goodbot.backend import LoraSettings, OptimizerSettings, StepStats, TrainingBackend

from goodbot_training.batches import make_batches, planned_steps
from goodbot_training.evaluation import Verdict, decide, measure
from goodbot_training.objectives import make_objective
from goodbot_training.rollouts import Rollout, build_rollouts, score
from goodbot_training.types import HELD_OUT, TRAIN, Job, data_error

if TYPE_CHECKING:
    from goodbot.backend import Floats

Emit = Callable[[dict[str, Any]], None]
"""Takes one event of the worker protocol."""


def run_round(job: Job, backend: TrainingBackend, emit: Emit) -> Verdict:
    """Train one candidate and judge it; emits all events but `failed`, the last being `done`.

    The adapter's files appear in `job.output` only when everything is done; a failure leaves
    nothing. Raises TrainingError or AdapterError.
    """
    started = time.monotonic()
    settings = job.settings
    objective = make_objective(settings)  # first: an unknown name must not cost a model load
    _progress(emit, "load", 0, 1)
    lora = LoraSettings(rank=settings.rank, alpha=settings.alpha)
    backend.load(job.model, lora=lora, adapter=job.parent, seed=job.seed)
    _progress(emit, "load", 1, 1)

    _progress(emit, "rollouts", 0, len(job.items))
    rollouts, too_long = build_rollouts(job, backend)
    train = [rollout for rollout in rollouts if rollout.split == TRAIN]
    held_out = [rollout for rollout in rollouts if rollout.split == HELD_OUT]
    if not train:
        raise data_error("There is no rated turn to train on.")
    parent_logprobs = _policy(backend, held_out, settings.tokens_per_forward)
    _progress(emit, "rollouts", len(job.items), len(job.items))

    rewards = [rollout.reward for rollout in train]
    weights = [rollout.weight for rollout in train]
    advantages, baseline = objective.advantages(job.baseline, rewards, weights)
    batches = make_batches(train, advantages, settings, seed=job.seed)
    optimizer = OptimizerSettings(
        learning_rate=settings.rate_for(backend.parameters),
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        tokens_per_forward=settings.tokens_per_forward,
    )
    planned = planned_steps(len(train), settings)
    taken: list[StepStats] = []
    skipped, began = 0, time.monotonic()
    for step, stats in enumerate(backend.train(batches, optimizer, objective), start=1):
        if stats.skipped:
            skipped += 1
        else:
            taken.append(stats)
        eta = (time.monotonic() - began) / step * (planned - step)
        _progress(emit, "train", step, planned, eta=round(eta, 2), **_shown(stats))

    partial = job.output / ".partial"
    try:
        backend.save_adapter(partial)
        _progress(emit, "gate", 0, 1)
        verdict = _judge(job, backend, partial, rollouts, held_out, parent_logprobs, bool(taken))
        _publish(partial, job.output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    emit(
        {
            "event": "gate",
            "passed": verdict.passed,
            "reason": verdict.reason,
            "metrics": _rounded(verdict.metrics),
        }
    )
    metrics = {
        "rollouts": len(train),
        "held_out": len(held_out),
        "too_long": too_long,
        "off_policy": sum(rollout.off_policy for rollout in train),
        "reward": fmean(rewards),
        "learning_rate": optimizer.learning_rate,
        "steps": len(taken),
        "skipped": skipped,
        **_means(taken),
    }
    emit(
        {
            "event": "done",
            "baseline": asdict(baseline),
            "metrics": _rounded(metrics),
            "seconds": round(time.monotonic() - started, 3),
        }
    )
    return verdict


def _judge(
    job: Job,
    backend: TrainingBackend,
    candidate: Path,
    rollouts: Sequence[Rollout],
    held_out: Sequence[Rollout],
    parent_logprobs: Sequence[Floats],
    changed: bool,
) -> Verdict:
    if not changed:
        return decide({"changed": 0.0}, job.settings)
    metrics = measure(
        backend,
        candidate,
        held_out=held_out,
        parent_logprobs=parent_logprobs,
        anchors=job.anchors or [item.messages for item in job.items],
        settings=job.settings,
        temperature=fmean(rollout.temperature for rollout in rollouts),
    )
    return decide(metrics, job.settings)


def _policy(backend: TrainingBackend, rollouts: Sequence[Rollout], budget: int) -> list[Floats]:
    turns = [rollout.turn for rollout in rollouts]
    temperatures = [rollout.temperature for rollout in rollouts]
    return score(backend, turns, temperatures, adapter=True, budget=budget)


def _publish(partial: Path, output: Path) -> None:
    """Move the finished files to where the daemon looks for them."""
    for path in sorted(partial.iterdir()):
        os.replace(path, output / path.name)


def _progress(emit: Emit, phase: str, step: int, steps: int, **more: float) -> None:
    emit({"event": "progress", "phase": phase, "step": step, "steps": steps, **more})


def _shown(stats: StepStats) -> dict[str, float]:
    if stats.skipped:
        return {}
    return _rounded(
        {
            "loss": stats.loss,
            "kl": stats.kl,
            "token_acceptance": stats.token_acceptance,
            "trajectory_acceptance": stats.trajectory_acceptance,
        }
    )


def _means(taken: Sequence[StepStats]) -> dict[str, float]:
    if not taken:
        return {}
    return {
        "loss": fmean(stats.loss for stats in taken),
        "kl": taken[-1].kl,
        "grad_norm": fmean(stats.grad_norm for stats in taken),
        "token_acceptance": fmean(stats.token_acceptance for stats in taken),
        "trajectory_acceptance": fmean(stats.trajectory_acceptance for stats in taken),
    }


def _rounded(metrics: Any) -> dict[str, float]:
    return {name: round(value, 6) for name, value in metrics.items()}
