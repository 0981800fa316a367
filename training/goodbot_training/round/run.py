# SPDX-License-Identifier: Apache-2.0
"""One training round, top to bottom: load → rollouts → advantages → train → gate → what it has learnt.

What it has learnt is published at a part of its strength, and at less where somebody is outvoted; a candidate
that is refused for its damage is asked once more at half of what it had."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from goodbot.api.backend import FreezesRanks, LoraSettings, OptimizesForInference, TrainingBackend
from goodbot.api.sampler import Sampled
from goodbot.base import trees
from goodbot.base.errors import AdapterError, ServerError

from goodbot_training import learnt
from goodbot_training.backends import fingerprint
from goodbot_training.backends.scoring import Tell
from goodbot_training.gate import Verdict, decide, measure
from goodbot_training.job.types import Job, data_error
from goodbot_training.memory.fit import Memory, peak_memory
from goodbot_training.objectives import make_objective
from goodbot_training.round import attempts, contested, notes, refuting, retiring, telling
from goodbot_training.round.checkpoints import Checkpoints, RoundState
from goodbot_training.round.dataset import Dataset, gather
from goodbot_training.round.hindsight import passes
from goodbot_training.round.restart import prepare
from goodbot_training.round.resume_loop import Lesson
from goodbot_training.round.rollouts import sift
from goodbot_training.round.standing import summed


def run_round(job: Job, backend: TrainingBackend, emit: telling.Emit) -> Verdict:
    """Train one candidate and judge it; emits all events but `failed`, the last being `done`.

    With `job.checkpoints` it goes on from where the same job was interrupted. The adapter's files
    appear in `job.output` only when everything is done; a failure leaves nothing there.
    Raises TrainingError or AdapterError.
    """
    with summed(job) as job:
        return _round(job, backend, emit)


def _round(job: Job, backend: TrainingBackend, emit: telling.Emit) -> Verdict:
    started = time.monotonic()
    objective = make_objective(job.settings)  # first: an unknown name must not cost a model load
    memory = Memory.of(job, backend.name)  # nor must a model that is too large
    before = job.parent  # what has answered until now, whatever is gone on from
    job, afresh = prepare(job)
    unheard = contested.unheard(job)
    checkpoints, job = Checkpoints(job.checkpoints, job), memory.within(job)
    telling.progress(emit, "load", 0, 1)
    load(job, backend)
    telling.progress(emit, "load", 1, 1)
    job, share = contested.settled(job)

    job, lengths = sift(job, backend)
    if job.refused:
        emit(telling.quarantine(job.refused))
    noted = notes.lengths(job, lengths) if objective.hindsight else []
    plan = memory.plan([*lengths.values(), *noted], job)
    emit({"event": "plan", **asdict(plan)})
    job = replace(job, settings=replace(job.settings, tokens_per_forward=plan.tokens_per_forward))
    # Without a guess at the rest: an adapter's own log-probs may follow, and nobody has timed them.
    read = len(job.items) + sum(
        passes(job, item) + notes.passes(job, item) for item in job.items if objective.hindsight
    )
    count = telling.counter(emit, "rollouts", read, timed=False)
    material = gather(job, backend, checkpoints, count, hindsight=objective.hindsight)
    telling.progress(emit, "rollouts", read, read)

    lesson, progress = attempts.learn(
        job, backend, objective, material, checkpoints, emit, recompute=plan.recompute
    )
    told = (*contested.told(unheard, share), *afresh, *attempts.told(progress))
    changed = any(not stats.skipped for stats in progress.steps)
    verdict = _published(job, before, backend, material, share, emit, changed=changed)
    if afresh:
        verdict = replace(verdict, metrics={**verdict.metrics, "start_over": 1.0})
    verdict = replace(verdict, said=(*told, *verdict.said))
    emit(telling.verdict(verdict))
    emit(
        {
            "event": "done",
            "baseline": asdict(lesson.baseline),
            "metrics": telling.rounded(_metrics(job, lesson, progress, material)),
            "peak_memory": peak_memory(),
            "seconds": round(time.monotonic() - started, 3),
        }
    )
    return verdict


def load(job: Job, backend: TrainingBackend) -> None:
    """Load the base and the adapter that the job goes on from."""
    lora = LoraSettings(rank=job.settings.rank, alpha=job.settings.alpha)
    backend.load(job.model, lora=lora, adapter=job.parent, seed=job.seed, bits=job.settings.base_bits)
    if job.frozen is not None and job.parent is not None:
        if not isinstance(backend, FreezesRanks):
            raise data_error("This backend cannot train one part of an adapter.")
        backend.freeze(job.frozen)


def _published(
    job: Job,
    before: Path | None,
    backend: TrainingBackend,
    material: Dataset,
    share: float,
    emit: telling.Emit,
    *,
    changed: bool,
) -> Verdict:
    """The gate's verdict on what was trained, whose files are in the job's output then.

    Of what has passed the event `learnt` says how it differs from the adapter `before`.
    """
    candidate = job.output / ".partial"
    try:
        backend.save_adapter(candidate)
        judge = partial(_judge, job, backend, candidate, material, changed, base_answers=[])
        verdict = _examined(job, backend, candidate, judge, share, emit)
        if verdict.passed:
            with suppress(AdapterError, ServerError):  # it is good enough without
                heat = job.temperature
                if found := learnt.measure(job, before, backend, candidate, temperature=heat):
                    emit(found.event())
            retiring.try_without(job, backend, candidate, emit)
            refuting.compare(job, backend, material.train, emit)
            backend.load_adapter(candidate)  # the gate has sampled by whichever version
            fingerprint.write(backend, candidate)
        for path in sorted(candidate.iterdir()):  # to where the daemon looks for them
            os.replace(path, job.output / path.name)
    finally:
        trees.remove(candidate, ignore_errors=True)
    return verdict


def _examined(
    job: Job,
    backend: TrainingBackend,
    candidate: Path,
    judge: Callable[..., Verdict],
    share: float,
    emit: telling.Emit,
) -> Verdict:
    """The verdict at the job's strength, or at less of it; `share` is the part that was trained for."""
    if isinstance(backend, OptimizesForInference):
        backend.optimize_for_inference()  # the gate mostly samples
    with suppress(AdapterError):  # one that cannot be read is the gate's to refuse
        _weaken(candidate, job, backend, job.settings.strength)
    answers = 2 * job.settings.gate_anchors or 1
    verdict = judge(tell=telling.counter(emit, "gate", answers))
    if verdict.too_strong(job.settings):
        _weaken(candidate, job, backend, job.settings.gate_retry)
        weaker = judge(tell=telling.counter(emit, "gate", job.settings.gate_anchors or 1))
        before, share = share, share * job.settings.gate_retry
        verdict = verdict.again(weaker, share, before)
    return replace(verdict, metrics={**verdict.metrics, "strength": share}) if share < 1 else verdict


def _judge(
    job: Job,
    backend: TrainingBackend,
    candidate: Path,
    material: Dataset,
    changed: bool,
    *,
    base_answers: list[Sampled],
    tell: Tell,
) -> Verdict:
    if not changed:
        return decide({"changed": 0.0}, job.settings)
    metrics = measure(
        job,
        backend,
        candidate,
        held_out=material.held_out,
        parent_logprobs=material.parent_logprobs,
        temperature=job.temperature,
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


def _metrics(job: Job, lesson: Lesson, progress: RoundState, material: Dataset) -> dict[str, float]:
    """What is told of a round at its end."""
    taken = [stats for stats in progress.steps if not stats.skipped]
    rated = [rollout for rollout in lesson.rollouts if rollout.rated]
    means = ("loss", "grad_norm", "token_acceptance", "trajectory_acceptance")
    return {
        "rollouts": len(rated),
        "held_out": len(material.held_out),
        "too_long": material.too_long,
        "left_out": len({*progress.left_out, *job.refused}),
        "off_policy": sum(rollout.off_policy for rollout in rated),
        "hindsight": sum(rollout.hindsight is not None for rollout in rated),
        "demonstrations": sum(rollout.demonstration for rollout in rated),
        "notes": len(lesson.rollouts) - len(rated),
        "reward": fmean([rollout.reward for rollout in rated if not rollout.demonstration] or [0.0]),
        "learning_rate": lesson.optimizer.learning_rate,
        "steps": len(taken),
        "skipped": len(progress.steps) - len(taken),
        **{name: fmean(getattr(stats, name) for stats in taken) for name in means if taken},
        **({"kl": taken[-1].kl} if taken else {}),
    }
