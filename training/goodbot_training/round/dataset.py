# SPDX-License-Identifier: Apache-2.0
"""What a round works with: its rollouts with their log-probs, computed once or taken from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend

from goodbot_training.backends.scoring import Tell, score
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import HELD_OUT, TRAIN, Job, turn_of
from goodbot_training.round.checkpoints import Checkpoints, Scores
from goodbot_training.round.hindsight import teach
from goodbot_training.round.notes import distil
from goodbot_training.round.rollouts import build_rollouts

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_UNSCORED = "its log-probabilities are not finite numbers"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The rollouts of a round by their split."""

    train: Sequence[Rollout]
    held_out: Sequence[Rollout]
    parent_logprobs: Sequence[Floats]
    """Of the held-out ones, under the adapter that the round starts from."""
    notes: Sequence[Rollout]
    """Answers that follow the notes, for prompts without them."""
    too_long: int
    unusable: Mapping[str, str]
    """Turns that are in neither, and why."""


def gather(
    job: Job,
    backend: TrainingBackend,
    checkpoints: Checkpoints,
    tell: Tell | None = None,
    *,
    hindsight: bool = False,
) -> Dataset:
    """Score the job's turns, unless a checkpoint knows their scores. Raises TrainingError.

    What cannot be scored is left out; `tell` hears of all that is read; with `hindsight` what people said of
    them is scored, too, and notes are taught. Afterwards the backend holds the job's parent adapter.
    """
    known = checkpoints.scores()
    rollouts, too_long = build_rollouts(job, backend, known, tell)
    held_out = [rollout for rollout in rollouts if rollout.split == HELD_OUT]
    if known is not None:
        parent = [np.asarray(known.parent[rollout.id], np.float32) for rollout in held_out]
        words = {id_: np.asarray(row, np.float32) for id_, row in known.hindsight.items()}
    else:
        parent = _of_parent(job, backend, held_out)
        words = teach(job, backend, rollouts, tell) if hindsight else {}
        checkpoints.keep_scores(_scores(rollouts, held_out, parent, words))
    rollouts = [replace(rollout, hindsight=words.get(rollout.id)) for rollout in rollouts]
    unusable = {
        turn_of(rollout.id): _UNSCORED
        for rollout in rollouts
        if not _finite(rollout.sampling_logprobs, rollout.reference_logprobs)
    }
    judged = [
        (rollout, row)
        for rollout, row in zip(held_out, parent, strict=True)
        if rollout.id not in unusable and _finite(row)
    ]
    return Dataset(
        train=[r for r in rollouts if r.split == TRAIN and turn_of(r.id) not in unusable],
        held_out=[rollout for rollout, _ in judged],
        parent_logprobs=[row for _, row in judged],
        notes=distil(job, backend, rollouts, tell) if hindsight else (),
        too_long=too_long,
        unusable=unusable
        | {r.id: _UNSCORED for r, row in zip(held_out, parent, strict=True) if not _finite(row)},
    )


def _of_parent(job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout]) -> Sequence[Floats]:
    if job.parent is None:  # a fresh adapter is the base
        return [rollout.reference_logprobs for rollout in rollouts]
    return score(
        backend,
        [rollout.turn for rollout in rollouts],
        [rollout.temperature for rollout in rollouts],
        adapter=True,
        budget=job.settings.tokens_per_forward,
    )


def _scores(
    rollouts: Sequence[Rollout],
    held_out: Sequence[Rollout],
    parent: Sequence[Floats],
    words: Mapping[str, Floats],
) -> Scores:
    return Scores(
        sampling={rollout.id: rollout.sampling_logprobs.tolist() for rollout in rollouts},
        reference={rollout.id: rollout.reference_logprobs.tolist() for rollout in rollouts},
        parent={r.id: row.tolist() for r, row in zip(held_out, parent, strict=True)},
        hindsight={id_: row.tolist() for id_, row in words.items()},
    )


def _finite(*rows: Floats) -> bool:
    return all(bool(np.isfinite(row).all()) for row in rows)
