# SPDX-License-Identifier: Apache-2.0
"""What the version before answers and what the new one does, to questions that this round has not
trained on. An earlier one may have.

It costs two portions of answers beside the gate's, of the same size as one of those, and is done for what
has passed only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.events import Message
from goodbot.api.learnt import EXAMPLES, LONGEST, Example, Learnt

from goodbot_training.backends.scoring import Tell
from goodbot_training.gate.measure import PORTION, make_requests
from goodbot_training.job.types import TRAIN, Job
from goodbot_training.learnt.features import Table, features, table
from goodbot_training.learnt.shift import LEAST_QUESTIONS, shifts

_CHANGED = 0.2
"""In what is named: a first word, or a fifth of the length."""


def measure(
    job: Job,
    before: Path | None,
    backend: TrainingBackend,
    candidate: Path,
    *,
    temperature: float,
    tell: Tell | None = None,
) -> Learnt | None:
    """The shifts from the adapter `before` (None: the base) to the `candidate`, both directories.

    `tell` hears of the answers of both: at most two portions.
    None where too few questions are there to say anything of others. Raises what a sampler raises.
    """
    asked, trained = _asked(job)
    count = min(PORTION, job.settings.gate_anchors)  # as `planning.gate` plans it
    requests = make_requests(replace(job, anchors=tuple(asked)), backend, temperature, count)
    keys = [_key(request.messages) for request in requests]
    kinds = list(dict.fromkeys(keys))
    if len(kinds) < LEAST_QUESTIONS:
        return None
    sampler = backend.sampler()
    sampler.load_adapter(1, candidate)
    if before is not None:
        sampler.load_adapter(2, before)
    texts: list[list[str]] = []
    for version in (2 if before is not None else 0, 1):
        sampler.activate(version)
        texts.append([one.text for one in sampler.sample_many(requests)])
        if tell:
            tell(len(requests))
    rated = [item for item in job.items if item.weight and item.reward and item.by_people]
    chosen = features([item.response for item in rated])
    old, new = (table(chosen, one) for one in texts)
    found = shifts(
        chosen,
        old,
        new,
        [kinds.index(key) for key in keys],
        table(chosen, [item.response for item in rated]),
        [item.reward for item in rated],
        seed=job.seed,
    )
    named = [j for j, shift in enumerate(found) if shift.named]
    return Learnt(
        answers=len(requests),
        questions=len(kinds),
        trained=trained,
        shifts=tuple(found),
        examples=_examples(job, keys, texts, np.abs(np.log1p(new) - np.log1p(old))[:, named]),
    )


def _asked(job: Job) -> tuple[Sequence[Sequence[Message]], bool]:
    """What is asked: what the round has not trained on, if that is enough; and whether it has.

    Its own held-out questions come first: of those it may show answers.
    """
    taught = {_key(item.messages) for item in job.items if item.split == TRAIN and item.weight}
    own = [item.messages for item in job.items]
    fresh = {key: one for one in (*own, *job.unrated, *job.anchors) if (key := _key(one)) not in taught}
    return (
        (list(fresh.values()), False) if len(fresh) >= LEAST_QUESTIONS else (list(job.anchors) or own, True)
    )


def _examples(
    job: Job, keys: Sequence[str], texts: Sequence[Sequence[str]], moved: Table
) -> tuple[Example, ...]:
    """The questions of this round of which the answers have moved most in what is named."""
    ids = {_key(item.messages): item.id for item in job.items if not item.demonstration}
    size = moved.sum(axis=1)
    best: dict[str, Example] = {}
    for n in sorted(range(len(keys)), key=lambda n: -float(size[n])):
        key = keys[n]
        if size[n] >= _CHANGED and key in ids and key not in best:
            before, after = (one[n].strip()[:LONGEST] for one in texts)
            best[key] = Example(id=ids[key], before=before, after=after)
    return tuple(best.values())[:EXAMPLES]


def _key(messages: Sequence[Message]) -> str:
    return json.dumps(list(messages), sort_keys=True)
