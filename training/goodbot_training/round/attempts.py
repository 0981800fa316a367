# SPDX-License-Identifier: Apache-2.0
"""The steps of a round, taken again from the first where one of them breaks.

An answer that breaks a step all by itself is left out. Where no answer does, the rate was too high: at half
of it the same round is tried again. At a rate of 12e-4 SmolLM2-135M broke at the second step in two of five
rounds; one of them, replayed at about half of that, learnt as others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from goodbot.api.backend import TrainingBackend
from goodbot.api.sentences import Reason, because
from goodbot.base.errors import TrainingError

from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import Job, data_error, turn_of
from goodbot_training.objectives import Objective
from goodbot_training.round import telling
from goodbot_training.round.checkpoints import Checkpoints, RoundState
from goodbot_training.round.dataset import Dataset
from goodbot_training.round.resume_loop import BrokenStepError, Lesson, make_lesson, train_in_slices

HALVINGS = 2
"""How often the rate is halved before the round fails."""


def learn(
    job: Job,
    backend: TrainingBackend,
    objective: Objective,
    material: Dataset,
    checkpoints: Checkpoints,
    emit: telling.Emit,
    *,
    recompute: bool,
) -> tuple[Lesson, RoundState]:
    """Take the steps that are left; the lesson as it was learnt, and all of its steps.

    Raises TrainingError where nothing is left to learn from, and where it breaks at a quarter of the rate.
    """
    progress = checkpoints.newest()
    if left_out := {**material.unusable, **progress.left_out}:
        emit(telling.quarantine(left_out))
    progress = replace(progress, left_out=left_out)
    while True:
        train = [row for row in material.train if row.weight and turn_of(row.id) not in progress.left_out]
        if not train:
            raise _nothing_left(progress)
        notes = [row for row in material.notes if row.id not in progress.left_out]
        lesson = _lesson(job, backend, objective, train, notes, progress.halvings, recompute=recompute)
        if not progress.steps:
            checkpoints.keep(progress, None)
            emit({"event": "checkpoint", "step": 0, "steps": lesson.steps})
        try:
            return lesson, train_in_slices(
                lesson,
                backend,
                checkpoints,
                progress,
                on_step=telling.teller(emit, lesson.optimizer, lesson.steps, len(progress.steps)),
                on_checkpoint=partial(telling.safe, emit, lesson.steps),
            )
        except BrokenStepError as error:
            # From the start: without a row every batch and every advantage is another one.
            progress = replace(
                progress, steps=(), trainer=None, left_out={**progress.left_out, **error.guilty}
            )
            if 2 * sum(turn_of(row.id) in progress.left_out for row in material.train) > len(material.train):
                raise _unsound() from error
            emit(telling.quarantine(error.guilty))
        except TrainingError as error:
            if error.kind != "nan" or progress.halvings == HALVINGS:
                raise
            progress = replace(progress, steps=(), trainer=None, halvings=progress.halvings + 1)
        backend.load_adapter(job.parent)


def told(progress: RoundState) -> tuple[Reason, ...]:
    """That the rate was too high, if it was."""
    if not progress.halvings:
        return ()
    return (because("check_half" if progress.halvings == 1 else "check_quarter"),)


def _lesson(
    job: Job,
    backend: TrainingBackend,
    objective: Objective,
    train: Sequence[Rollout],
    notes: Sequence[Rollout],
    halvings: int,
    *,
    recompute: bool,
) -> Lesson:
    lesson = make_lesson(job, backend, objective, train, notes, recompute=recompute)
    rate = lesson.optimizer.learning_rate / 2**halvings
    return replace(lesson, optimizer=replace(lesson.optimizer, learning_rate=rate))


def _nothing_left(progress: RoundState) -> TrainingError:
    return _unsound() if progress.left_out else data_error("There is no rated turn to train on.")


def _unsound() -> TrainingError:
    return TrainingError(
        "Too many of the rated answers break the training: the model's weights, the adapter that it "
        "starts from or the [training.settings] are not sound.",
        kind="nan",
    )
