# SPDX-License-Identifier: Apache-2.0
"""The teacher's pass: what people's words say of each token of the answers that they speak of.

Once a round, without gradient, and kept with the other scores (`checkpoints.Scores`). Teacher and student
are the policy that the round starts from; their prompts differ in nothing but the words, which stand behind
the last question and are tokenized as whatever people write is: no template's mark is one in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.sampler import TokenizedTurn

from goodbot_training.backends.scoring import Tell, score
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import TRAIN, Job, RatedSample, TrainingSettings

if TYPE_CHECKING:
    from goodbot.api.step import Floats


def with_words(messages: Sequence[Message], words: str) -> list[Message]:
    """The conversation with `words` behind its last question; nothing where nobody asks anything."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            said = {**messages[at], "content": f"{messages[at]['content']}\n\n{words}"}
            return [*messages[:at], said, *messages[at + 1 :]]
    return []


def advantages(
    student: Floats, teacher: Floats, settings: TrainingSettings, *, temperature: float, reward: float
) -> Floats:
    """d_t of `objectives.hindsight`, `(R,)` in nats, of the log-probs without and with the words.

    At a temperature T log-probs lie 1/T as far apart, which says nothing more: so T times their difference.
    Together they weigh no more than the rating r: w · mean_t |d_t| ≤ |r|, whatever the words say.
    """
    bound = settings.hindsight_clip
    found = np.clip(temperature * (teacher - student), -bound, bound).astype(np.float32)
    found[: settings.hindsight_skip] = 0.0
    says = settings.hindsight_weight * float(abs(found).mean())
    return found * np.float32(abs(reward) / says) if says > abs(reward) else found


def passes(job: Job, item: RatedSample) -> int:
    """How often an item is read for its words: with those of each rater, and by an adapter without them."""
    if item.split != TRAIN or not item.weight or not job.settings.hindsight_weight:
        return 0
    said = sum(bool(one.weight) for one in item.hindsight)
    return said and said + (job.parent is not None)


def teach(
    job: Job, backend: TrainingBackend, rollouts: Sequence[Rollout], tell: Tell | None = None
) -> dict[str, Floats]:
    """What words say of each token, Σ ω · d over their raters, by the ids of the rollouts that train.

    Missing is what would be too long with its words, and what cannot be scored: it keeps its rating alone.
    `tell` hears of what is read for it, about `passes`.
    The backend holds the job's parent adapter before and after.
    """
    items = {item.id: item for item in job.items}
    vocabulary = getattr(backend, "vocabulary", math.inf)  # a backend of a plugin need not tell
    known: dict[str, Floats] = {}
    asked: list[_Pass] = []
    for rollout in rollouts:
        item = items[rollout.id]
        if not passes(job, item):
            continue
        most = vocabulary, job.settings.max_sequence_tokens - len(rollout.turn.response)
        student = prompt_of(item.messages, item, backend, most)
        worded = [
            (prompt_of(with_words(item.messages, one.text), item, backend, most), one.weight)
            for one in item.hindsight
        ]
        teachers = [(prompt, weight) for prompt, weight in worded if prompt and weight]
        if not student or not teachers:
            continue
        starts = _known(job, item, rollout) if student == rollout.turn.prompt else None
        if starts is not None:
            known[item.id] = starts
        else:
            asked.append(_Pass(rollout=rollout, prompt=student))
        asked += [_Pass(rollout=rollout, prompt=prompt, weight=weight) for prompt, weight in teachers]
    rows = score(
        backend,
        [TokenizedTurn(prompt=one.prompt, response=one.rollout.turn.response) for one in asked],
        [one.rollout.temperature for one in asked],
        adapter=job.parent is not None,  # a fresh one says what the base says
        budget=job.settings.tokens_per_forward,
        tell=tell,
    )
    found: dict[str, Floats] = {}
    for one, row in zip(asked, rows, strict=True):
        id_ = one.rollout.id
        if not one.weight:
            known[id_] = row
            continue
        heat, reward = one.rollout.temperature, one.rollout.reward
        said = advantages(known[id_], row, job.settings, temperature=heat, reward=reward)
        said *= np.float32(one.weight)
        if np.isfinite(said).all():
            found[id_] = found[id_] + said if id_ in found else said
    return found


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """One answer read behind one prompt: without words (weight 0), or with those of one rater."""

    rollout: Rollout
    prompt: tuple[int, ...]
    weight: float = 0.0


def prompt_of(
    messages: Sequence[Message], item: RatedSample, backend: TrainingBackend, most: tuple[float, int]
) -> tuple[int, ...]:
    """Its tokens by the model's own template; empty where it refuses it, or the model has no place for it.

    `most` are the first token id that the model does not know, and how many tokens there may be.
    """
    thought = (item.thought,) if item.thought else ()
    try:
        prompt = backend.tokenize(messages, item.response, *thought).prompt if messages else ()
    except MemoryError:
        raise
    except Exception:  # a template is a program: it may fail in any way
        return ()
    foreign, longest = most
    return prompt if prompt and len(prompt) <= longest and max(prompt) < foreign else ()


def _known(job: Job, item: RatedSample, rollout: Rollout) -> Floats | None:
    """What the policy that the round starts from says without the words, where that was scored already."""
    if job.parent is None:
        return rollout.reference_logprobs
    started = item.version and job.behaviour.get(item.version) == job.parent
    return rollout.sampling_logprobs if started and not item.scored else None
