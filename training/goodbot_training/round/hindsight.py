# SPDX-License-Identifier: Apache-2.0
"""The teacher's pass: what people's words say of each token of the answers that they speak of.

Once a round, without gradient, and kept with the other scores (`checkpoints.Scores`). Teacher and student
are the policy that the round starts from; their prompts differ in nothing but the words, which stand behind
the last question and are tokenized as whatever people write is: no template's mark is one in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.sampler import TokenizedTurn

from goodbot_training.process.types import TRAIN, Job, RatedSample, TrainingSettings
from goodbot_training.round.rollouts import Rollout, score

if TYPE_CHECKING:
    from goodbot.api.backend import Floats


def with_words(messages: Sequence[Message], words: str) -> list[Message]:
    """The conversation with `words` behind its last question; nothing where nobody asks anything."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            said = {**messages[at], "content": f"{messages[at]['content']}\n\n{words}"}
            return [*messages[:at], said, *messages[at + 1 :]]
    return []


def advantages(student: Floats, teacher: Floats, settings: TrainingSettings) -> Floats:
    """d_t of `objectives.hindsight`, `(R,)` in nats, of the log-probs without and with the words."""
    bound = settings.hindsight_clip
    found = np.clip(teacher - student, -bound, bound).astype(np.float32)
    found[: settings.hindsight_skip] = 0.0
    return found


def teach(job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout]) -> dict[str, Floats]:
    """The token advantages, by id, of the rollouts that train and have words.

    Missing is what would be too long with its words, and what cannot be scored: it keeps its rating alone.
    The backend holds the job's parent adapter before and after.
    """
    items = {item.id: item for item in job.items}
    vocabulary = getattr(backend, "vocabulary", math.inf)  # a backend of a plugin need not tell
    known: dict[str, Floats] = {}
    asked: list[tuple[str, TokenizedTurn, float]] = []
    for rollout in rollouts:
        item = items[rollout.id]
        if not item.hindsight or rollout.split != TRAIN or not rollout.weight:
            continue
        student, teacher = _prompts(item, backend)
        if not student or not teacher:
            continue
        longest = max(len(student), len(teacher)) + len(rollout.turn.response)
        if longest > job.settings.max_sequence_tokens or max(*student, *teacher) >= vocabulary:
            continue
        starts = _known(job, item, rollout) if student == rollout.turn.prompt else None
        if starts is not None:
            known[item.id] = starts
        for prompt in (teacher,) if starts is not None else (student, teacher):
            turn = TokenizedTurn(prompt=prompt, response=rollout.turn.response)
            asked.append((item.id, turn, rollout.temperature))
    rows = score(
        backend,
        [turn for _, turn, _ in asked],
        [temperature for _, _, temperature in asked],
        adapter=job.parent is not None,  # a fresh one says what the base says
        budget=job.settings.tokens_per_forward,
    )
    found: dict[str, Floats] = {}
    for (id_, _, _), row in zip(asked, rows, strict=True):
        if id_ not in known:
            known[id_] = row
        else:
            found[id_] = advantages(known[id_], row, job.settings)
    return {id_: row for id_, row in found.items() if np.isfinite(row).all()}


def _prompts(item: RatedSample, backend: TrainingBackend) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Without and with the words, by the model's own template; empty where it refuses one."""
    worded = with_words(item.messages, item.hindsight)
    if not worded:
        return (), ()
    thought = (item.thought,) if item.thought else ()
    try:
        plain, teacher = (
            backend.tokenize(messages, item.response, *thought).prompt for messages in (item.messages, worded)
        )
    except MemoryError:
        raise
    except Exception:  # a template is a program: it may fail in any way
        return (), ()
    return plain, teacher


def _known(job: Job, item: RatedSample, rollout: Rollout) -> Floats | None:
    """What the policy that the round starts from says without the words, where that was scored already."""
    if job.parent is None:
        return rollout.reference_logprobs
    started = item.version and job.behaviour.get(item.version) == job.parent
    return rollout.sampling_logprobs if started and not item.scored else None
