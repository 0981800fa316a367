"""One training round, top to bottom: load → rollouts → advantages → train → gate.

What it has learnt is published at a part of its strength, and at less where somebody is outvoted; a candidate
that is refused for its damage is asked once more at half of what it had."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from goodbot.api.backend import (
    LoraSettings,
    OptimizerSettings,
    OptimizesForInference,
    Sampled,
    StepStats,
    TrainingBackend,
)
from goodbot.base.errors import AdapterError, TrainingError

from goodbot_training.gate import Verdict, decide, measure
from goodbot_training.memory.fit import Memory
from goodbot_training.objectives import make_objective
from goodbot_training.process import fingerprint
from goodbot_training.process.types import Job, data_error
from goodbot_training.round import contested
from goodbot_training.round.checkpoints import Checkpoints, Progress
from goodbot_training.round.dataset import Material, gather
from goodbot_training.round.restart import prepare
from goodbot_training.round.resume_loop import BrokenStepError, make_lesson, train_in_slices
from goodbot_training.round.rollouts import Tell, sift

Emit = Callable[[dict[str, Any]], None]
"""Takes one event of the worker protocol."""


def run_round(job: Job, backend: TrainingBackend, emit: Emit) -> Verdict:
    """Train one candidate and judge it; emits all events but `failed`, the last being `done`.

    With `job.checkpoints` it goes on from where the same job was interrupted. The adapter's files
    appear in `job.output` only when everything is done; a failure leaves nothing there.
    Raises TrainingError or AdapterError.
    """
    started = time.monotonic()
    objective = make_objective(job.settings)  # first: an unknown name must not cost a model load
    memory = Memory.of(job, backend.name)  # nor must a model that is too large
    job, afresh = prepare(job)
    unheard = contested.unheard(job)
    checkpoints, job = Checkpoints(job.checkpoints, job), memory.within(job)
    _progress(emit, "load", 0, 1)
    lora = LoraSettings(rank=job.settings.rank, alpha=job.settings.alpha)
    backend.load(
        job.model, lora=lora, adapter=job.parent, seed=job.seed, bits=job.settings.base_bits
    )
    _progress(emit, "load", 1, 1)
    job, share = contested.settled(job)

    job, lengths = sift(job, backend)
    if job.refused:
        emit(_quarantine(job.refused))
    plan = memory.plan(list(lengths.values()), job)
    emit({"event": "plan", **asdict(plan)})
    job = replace(job, settings=replace(job.settings, tokens_per_forward=plan.tokens_per_forward))
    # Without a guess at the rest: an adapter's own log-probs may follow, and nobody has timed them.
    count = _counter(emit, "rollouts", len(job.items), timed=False)
    material = gather(job, backend, checkpoints, count)
    _progress(emit, "rollouts", len(job.items), len(job.items))

    progress = checkpoints.newest()
    if left_out := {**material.unusable, **progress.left_out}:
        emit(_quarantine(left_out))
    progress = replace(progress, left_out=left_out)
    while True:
        train = [r for r in material.train if r.weight and r.id not in progress.left_out]
        if not train:
            raise _nothing_left(progress)
        lesson = make_lesson(job, backend, objective, train, recompute=plan.recompute)
        if not progress.steps:
            checkpoints.keep(progress, None)
            emit({"event": "checkpoint", "step": 0, "steps": lesson.steps})
        try:
            progress = train_in_slices(
                lesson,
                backend,
                checkpoints,
                progress,
                on_step=_teller(emit, lesson.optimizer, lesson.steps, len(progress.steps)),
                on_checkpoint=partial(_safe, emit, lesson.steps),
            )
            break
        except BrokenStepError as error:
            # From the start: without a row every batch and every advantage is another one.
            progress = Progress(left_out={**progress.left_out, **error.guilty})
            if 2 * sum(row.id in progress.left_out for row in material.train) > len(material.train):
                raise _unsound() from error
            emit(_quarantine(error.guilty))
            backend.load_adapter(job.parent)
    taken = [stats for stats in progress.steps if not stats.skipped]

    candidate, told = job.output / ".partial", contested.told(unheard, share) + afresh
    try:
        backend.save_adapter(candidate)
        if isinstance(backend, OptimizesForInference):
            backend.optimize_for_inference()  # the gate mostly samples
        with suppress(AdapterError):  # one that cannot be read is the gate's to refuse
            _weaken(candidate, job, backend, job.settings.strength)
        answers = 2 * job.settings.gate_anchors or 1
        judge = partial(_judge, job, backend, candidate, material, bool(taken), base_answers=[])
        verdict = judge(tell=_counter(emit, "gate", answers))
        if verdict.too_strong(job.settings):
            _weaken(candidate, job, backend, job.settings.gate_retry)
            weaker = judge(tell=_counter(emit, "gate", job.settings.gate_anchors or 1))
            before, share = share, share * job.settings.gate_retry
            verdict = verdict.again(weaker, share, before)
        if share < 1:
            verdict = replace(verdict, metrics={**verdict.metrics, "strength": share})
        if afresh:
            verdict = replace(verdict, metrics={**verdict.metrics, "start_over": 1.0})
        verdict = replace(verdict, reason=told + verdict.reason)
        if verdict.passed:
            backend.load_adapter(candidate)  # the gate has sampled by whichever version
            fingerprint.write(backend, candidate)
        _publish(candidate, job.output)
    finally:
        shutil.rmtree(candidate, ignore_errors=True)
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
        "held_out": len(material.held_out),
        "too_long": material.too_long,
        "left_out": len({*progress.left_out, *job.refused}),
        "off_policy": sum(rollout.off_policy for rollout in train),
        "reward": fmean(rollout.reward for rollout in train),
        "learning_rate": lesson.optimizer.learning_rate,
        "steps": len(taken),
        "skipped": len(progress.steps) - len(taken),
        **_means(taken),
    }
    emit(
        {
            "event": "done",
            "baseline": asdict(lesson.baseline),
            "metrics": _rounded(metrics),
            "seconds": round(time.monotonic() - started, 3),
        }
    )
    return verdict


def _judge(
    job: Job, backend: TrainingBackend, candidate: Path, material: Material, changed: bool, *,
    base_answers: list[Sampled], tell: Tell,
) -> Verdict:  # fmt: skip
    if not changed:
        return decide({"changed": 0.0}, job.settings)
    everything = (*material.train, *material.held_out)
    metrics = measure(
        job,
        backend,
        candidate,
        held_out=material.held_out,
        parent_logprobs=material.parent_logprobs,
        temperature=fmean(rollout.temperature for rollout in everything),
        base_answers=base_answers,
        tell=tell,
    )
    return decide(metrics, job.settings)


def _weaken(candidate: Path, job: Job, backend: TrainingBackend, share: float) -> None:
    """Take the candidate, on the disk and in the backend, so far of the way from the policy before it."""
    from goodbot_training.backends.adapters import weaken

    if share < 1:
        weaken(candidate, job.parent, share)
        backend.load_adapter(candidate)


def _publish(partial: Path, output: Path) -> None:
    """Move the finished files to where the daemon looks for them."""
    for path in sorted(partial.iterdir()):
        os.replace(path, output / path.name)


def _progress(emit: Emit, phase: str, step: int, steps: int, **more: float) -> None:
    emit({"event": "progress", "phase": phase, "step": step, "steps": steps, **more})


def _counter(emit: Emit, phase: str, steps: int, *, timed: bool = True) -> Tell:
    """What counts a phase up; `timed`: and how long the rest of it will take at most."""
    began, done = time.monotonic(), 0

    def tell(more: int) -> None:
        nonlocal done
        done = min(done + more, steps)
        eta = (time.monotonic() - began) / done * (steps - done)
        _progress(emit, phase, done, steps, **({"eta": round(eta, 2)} if timed else {}))

    _progress(emit, phase, 0, steps)
    return tell


def _teller(
    emit: Emit, optimizer: OptimizerSettings, planned: int, before: int
) -> Callable[[Sequence[StepStats]], None]:
    """What tells each step, and how long the others will take. `before` were done earlier."""
    began = last = time.monotonic()

    def tell(steps: Sequence[StepStats]) -> None:
        nonlocal last
        now, done = time.monotonic(), len(steps)
        eta = (now - began) / (done - before) * (planned - done)
        taken = sum(not stats.skipped for stats in steps)
        shown = _shown(steps[-1], optimizer.rate_at(taken))
        _progress(
            emit, "train", done, planned, eta=round(eta, 2), seconds=round(now - last, 4), **shown
        )
        last = now

    return tell


def _safe(emit: Emit, planned: int, step: int) -> None:
    emit({"event": "checkpoint", "step": step, "steps": planned})


def _quarantine(turns: Mapping[str, str]) -> dict[str, Any]:
    return {
        "event": "quarantine",
        "turns": [{"id": id_, "reason": reason} for id_, reason in turns.items()],
    }


def _nothing_left(progress: Progress) -> TrainingError:
    return _unsound() if progress.left_out else data_error("There is no rated turn to train on.")


def _unsound() -> TrainingError:
    return TrainingError(
        "Too many of the rated answers break the training: the model's weights, the adapter that it "
        "starts from or the [training.settings] are not sound.",
        kind="nan",
    )


def _shown(stats: StepStats, learning_rate: float) -> dict[str, float]:
    if stats.skipped:
        return {}
    numbers = {
        "loss": stats.loss,
        "kl": stats.kl,
        "token_acceptance": stats.token_acceptance,
        "trajectory_acceptance": stats.trajectory_acceptance,
        "grad_norm": stats.grad_norm,
    }
    return {**_rounded(numbers), "learning_rate": learning_rate, "tokens": stats.tokens}


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
