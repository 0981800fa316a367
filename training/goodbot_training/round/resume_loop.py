# SPDX-License-Identifier: Apache-2.0
"""The steps of a round, in slices: after each one a checkpoint, from which a killed round goes on.

What is trained on is a pure function of the job, so going on means to skip the batches that are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBackend, TrainingBatch
from goodbot.base.errors import TrainingError

from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import Baseline, Job, TrainingSettings, turn_of
from goodbot_training.objectives import Objective
from goodbot_training.objectives.advantages import kept, to_learn
from goodbot_training.round import restart
from goodbot_training.round.batches import make_batches, pad, planned_steps
from goodbot_training.round.checkpoints import Checkpoints, RoundState
from goodbot_training.round.nan_search import absurd, guilty_rows


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a round trains on, and how."""

    rollouts: Sequence[Rollout]
    advantages: Sequence[float]
    baseline: Baseline
    """After this round."""
    settings: TrainingSettings
    optimizer: OptimizerSettings
    objective: LossFunction
    seed: int

    @property
    def steps(self) -> int:
        """How many there will be."""
        return planned_steps(len(self.rollouts), self.settings)

    def batches(self, skip: int = 0) -> Iterator[TrainingBatch]:
        """Those after the first `skip`."""
        batches = make_batches(self.rollouts, self.advantages, self.settings, seed=self.seed)
        return islice(batches, skip, None)

    def batch_of(self, rows: Sequence[int], normalizer: float) -> TrainingBatch:
        """One batch of these rollouts."""
        rollouts = [self.rollouts[row] for row in rows]
        return pad(rollouts, [self.advantages[row] for row in rows], normalizer)


def make_lesson(
    job: Job,
    backend: TrainingBackend,
    objective: Objective,
    rollouts: Sequence[Rollout],
    notes: Sequence[Rollout] = (),
    *,
    recompute: bool,
    decay_steps: int | None = None,
) -> Lesson:
    """What the job's round trains on these rollouts, by its settings as they are; `notes` nobody has rated.

    The learning rate falls to 0 over `decay_steps`; None: over the lesson's own.
    """
    settings = job.settings
    rollouts = sorted(rollouts, key=lambda row: row.demonstration)
    rated = [row for row in rollouts if not row.demonstration]
    shown = [row.weight for row in rollouts if row.demonstration]
    rewards, weights = [row.reward for row in rated], [row.weight for row in rated]
    advantages, baseline = restart.advantages(job, objective, rewards, weights)
    said = [settings.hindsight_weight * row.said for row in rated]
    left = kept(rewards, weights, said) if objective.instead else [1.0] * len(rated)
    advantages = [a * share for a, share in zip(advantages, left, strict=True)]
    news = [weight * share for weight, share in zip(weights, left, strict=True)]
    said += [settings.hindsight_weight * row.said for row in notes]
    if decay_steps is None:
        decay_steps = planned_steps(len(rollouts) + len(notes), settings)
    optimizer = OptimizerSettings(
        learning_rate=settings.bolder
        * settings.rate_for(backend.parameters)
        * to_learn(job.baseline, rewards, news, advantages, [*said, *shown]),
        attention_rate=settings.attention_rate,
        damping=settings.damping,
        warmup_steps=settings.warmup,
        decay_steps=decay_steps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        tokens_per_forward=settings.tokens_per_forward,
        recompute=recompute,
    )
    return Lesson(
        rollouts=[*restart.written_by_the_base(job, rollouts), *notes],
        advantages=[*advantages, *shown, *(0.0 for _ in notes)],
        baseline=baseline,
        settings=settings,
        optimizer=optimizer,
        objective=objective,
        seed=job.seed,
    )


class BrokenStepError(Exception):
    """A step came out broken, and these turns (id → why) do it all by themselves."""

    def __init__(self, guilty: dict[str, str]) -> None:
        self.guilty = guilty
        super().__init__()


def train_in_slices(
    lesson: Lesson,
    backend: TrainingBackend,
    checkpoints: Checkpoints,
    progress: RoundState,
    on_step: Callable[[Sequence[StepStats]], None],
    on_checkpoint: Callable[[int], None],
) -> RoundState:
    """Take the steps that are left after `progress`; returns it with all of them.

    `on_step` gets all steps so far, `on_checkpoint` how many of them are safe. Raises
    BrokenStepError, and TrainingError(kind="nan") for a broken step for which no turn is to blame.
    """
    steps = list(progress.steps)
    kept, since = len(steps), time.monotonic()
    training = backend.train(
        lesson.batches(skip=len(steps)), lesson.optimizer, lesson.objective, checkpoint=progress.trainer
    )

    def keep() -> None:
        nonlocal kept, since
        now = replace(progress, steps=tuple(steps))
        checkpoints.keep(now, backend.save_checkpoint)
        kept, since = len(steps), time.monotonic()
        on_checkpoint(kept)

    try:
        for stats in training:
            steps.append(stats)
            _require_calm(steps, lesson)
            on_step(steps)
            settings = lesson.settings
            late = time.monotonic() - since >= settings.slice_seconds
            last = len(steps) == lesson.steps  # the gate, too, can be killed
            if last or late or len(steps) - kept >= settings.slice_steps:
                keep()
    except TrainingError as error:
        if error.kind != "nan":
            raise
        step = error.step if isinstance(error, _ExplodedError) else len(steps)
        if guilty := _guilty(lesson, backend, step, absurd(steps, lesson.optimizer.max_grad_norm)):
            raise BrokenStepError(guilty) from error
        raise
    return replace(progress, steps=tuple(steps))


class _ExplodedError(TrainingError):
    """The gradient of one of the steps so far is out of all proportion."""

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(
            "The gradient of a step was out of all proportion to the others, and no single answer "
            "was to blame.",
            kind="nan",
        )


def _require_calm(steps: Sequence[StepStats], lesson: Lesson) -> None:
    """Every step is compared, also those before there was a usual norm."""
    limit = absurd(steps, lesson.optimizer.max_grad_norm)
    for number, stats in enumerate(steps):
        if stats.grad_norm > limit:
            raise _ExplodedError(number)


def _guilty(lesson: Lesson, backend: TrainingBackend, step: int, limit: float) -> dict[str, str]:
    """The turns that break the batch of a step, by the weights as they are now: id → why.

    Empty when more than half of them do: then it is the weights that are broken, or the settings.
    """
    batch = next(lesson.batches(skip=step))
    places = {id(rollout.turn): row for row, rollout in enumerate(lesson.rollouts)}
    rows = sorted({places[id(turn)] for turn in batch.sequences})

    def examine(part: Sequence[int]) -> StepStats:
        smaller = lesson.batch_of(part, batch.normalizer)
        return backend.examine(smaller, lesson.optimizer, lesson.objective)

    found = guilty_rows(rows, examine, limit)
    if 2 * len(found) > len(rows):
        return {}
    return {turn_of(lesson.rollouts[row].id): why for row, why in found.items()}
