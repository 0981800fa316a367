# SPDX-License-Identifier: Apache-2.0
"""The round in small: the same functions on fewer answers and steps, each part timed and scaled up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from goodbot.api.backend import TrainingBackend, TrainingBatch

from goodbot_training.job.types import HELD_OUT, Job, RatedSample, data_error
from goodbot_training.memory.fit import Memory, peak_memory
from goodbot_training.objectives import make_objective
from goodbot_training.planning.cost import Cost, RoundEstimate, Stopwatch, total
from goodbot_training.planning.gate import portions, sample_some
from goodbot_training.round import notes
from goodbot_training.round.batches import planned_steps
from goodbot_training.round.checkpoints import Checkpoints
from goodbot_training.round.contested import settled
from goodbot_training.round.dataset import Dataset, gather
from goodbot_training.round.hindsight import passes
from goodbot_training.round.resume_loop import Lesson, make_lesson
from goodbot_training.round.rollouts import sift
from goodbot_training.round.run import load

_ANSWERS = 64
"""Scored in the miniature, at most."""
_STEPS = 6
_SECONDS = 1.0
"""CPU seconds of optimizer steps in the miniature: after so many it takes no further one."""


def rehearse(job: Job, backend: TrainingBackend, memory: Memory) -> RoundEstimate:
    """Time a miniature of the round. The backend's weights are worth nothing afterwards.

    Raises TrainingError as the round itself would.
    """
    watch = Stopwatch()
    load(job, backend)
    loaded = watch.lap()
    job, share = settled(job)
    job, lengths = sift(job, backend)
    kept = [item for item in job.items if item.id in lengths]
    count = sum(map(_teaches, kept))
    if not count:
        raise data_error("There is no rated turn to train on.")
    objective = make_objective(job.settings)
    noted = notes.lengths(job, lengths) if objective.hindsight else []
    plan = memory.plan([*lengths.values(), *noted], job)
    settings = replace(job.settings, tokens_per_forward=plan.tokens_per_forward)
    small = replace(job, settings=settings, items=_some(kept))
    read = watch.lap()

    bare = replace(small, items=tuple(replace(item, note=None) for item in small.items))
    material = gather(bare, backend, Checkpoints(None, job), hindsight=objective.hindsight)
    scored = watch.lap()
    taught = [rollout for rollout in material.train if rollout.weight]
    if not taught:
        raise data_error("There is no rated turn to train on.")
    rollouts = read + scored * (sum(lengths.values()) / _tokens(material))
    per_token = scored * (1 / _scored(small, material))
    answered = notes.distil(small, backend, taught) if noted else []
    rollouts += watch.lap() * (len(noted) / max(1, len(answered)))

    steps = planned_steps(count + len(noted), settings)
    lesson = make_lesson(
        small, backend, objective, taught, answered, recompute=plan.recompute, decay_steps=steps
    )
    train = _train(small, lesson, backend, steps, watch)
    backend.save_adapter(job.output)
    judged = sum(lengths[item.id] for item in kept if item.split == HELD_OUT)
    answers = _answers(small, backend, watch, per_token) if train.changes else [Cost()] * 3
    before = total([loaded, rollouts, train.cost, watch.lap(), per_token * judged])
    least, usual, most = (before + cost for cost in answers)
    return RoundEstimate(
        how="measured",
        train=sum(_teaches(item) and not item.demonstration for item in kept),
        held_out=len(kept) - count,
        too_long=len(job.rated) - sum(not item.demonstration for item in kept),
        tokens=sum(lengths.values()),
        longest=max(lengths.values()),
        learning_rate=lesson.optimizer.learning_rate,
        share=share,
        steps=steps,
        passes=steps * settings.batch_size / (count + len(noted)),
        memory=plan,
        peak=peak_memory(),
        parts=_parts(loaded, rollouts, train.cost, usual),
        total=usual,
        least=least,
        most=most,
    )


def _parts(load_: Cost, rollouts: Cost, train: Cost, whole: Cost) -> dict[str, Cost]:
    gate = whole + (load_ + rollouts + train) * -1
    return {"load": load_, "rollouts": rollouts, "train": train, "gate": gate}


def _answers(job: Job, backend: TrainingBackend, watch: Stopwatch, per_token: Cost) -> list[Cost]:
    """Of the gate's answers: the least, the usual and the most."""
    if not job.settings.gate_anchors:
        return [Cost()] * 3
    sample = sample_some(job, backend, watch)
    portion = sample.portion + per_token * sample.tokens
    return [portion * number for number in portions(job.settings, rare=sample.rare, tried=len(job.trials))]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """What all steps cost, and whether any of them would change a weight."""

    cost: Cost
    changes: bool


def _train(job: Job, lesson: Lesson, backend: TrainingBackend, steps: int, watch: Stopwatch) -> _Steps:
    """A few real steps; the first one prepares what the others find, so it is no measure of them."""
    batches = list(lesson.batches())
    taken = [batch for batch in batches if batch.teaches]
    if not taken:
        return _Steps(cost=Cost(), changes=False)
    costs: list[Cost] = []
    checkpoint = job.output / "checkpoint"
    checkpoint.mkdir()
    watch.lap()
    for _ in backend.train(iter(taken[:_STEPS]), lesson.optimizer, lesson.objective):
        costs.append(watch.lap())
        if len(costs) > 1 and total(costs).cpu > _SECONDS:
            break
    backend.save_checkpoint(checkpoint)
    slices = -(-steps // job.settings.slice_steps)
    saving = watch.lap() * slices
    sizes = [_size(batch) for batch in taken]
    timed = costs[1:] or costs
    per_token = total(timed) * (1 / sum(sizes[1 : len(costs)] or sizes[:1]))
    rest = per_token * sum(sizes[1:]) * (steps / len(batches))
    return _Steps(cost=costs[0] + rest + saving, changes=True)


def _some(items: Sequence[RatedSample]) -> tuple[RatedSample, ...]:
    """At most `_ANSWERS`, evenly over time and so of both splits, with at least one to train on."""
    step = max(1, -(-len(items) // _ANSWERS))
    chosen = items[::step]
    if not any(map(_teaches, chosen)):
        chosen = [*chosen, next(filter(_teaches, items))]
    return tuple(chosen)


def _teaches(item: RatedSample) -> bool:
    return item.split != HELD_OUT and bool(item.weight)


def _size(batch: TrainingBatch) -> int:
    return sum(len(turn.prompt) + len(turn.response) for turn in batch.sequences)


def _tokens(material: Dataset) -> int:
    rows = (*material.train, *material.held_out)
    return sum(len(row.turn.prompt) + len(row.turn.response) for row in rows)


def _scored(job: Job, material: Dataset) -> int:
    """Tokens that `gather` has put through the model: each answer once a policy that it needs."""
    policies = {
        item.id: 1 + (item.split == HELD_OUT) + (not item.captured and item.version in job.behaviour)
        for item in job.items
    }
    taught = {item.id: passes(job, item) for item in job.items}
    return sum(
        (policies[row.id] + taught[row.id] * (row.hindsight is not None))
        * (len(row.turn.prompt) + len(row.turn.response))
        for row in (*material.train, *material.held_out)
    )
