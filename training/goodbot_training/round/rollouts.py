# SPDX-License-Identifier: Apache-2.0
"""Rated turns → rollouts: token ids, the log-probs of who wrote them, and those of the base.

Where the server gave its own token ids and log-probs these are used as they are: re-tokenized text
need not be what was sampled. Where it did not, the text is tokenized and scored under the adapter
version that wrote it; an answer of an unknown version (or of another model) is scored under the
base and flagged `off_policy`.

All log-probs here are the policies' own, at the temperature: of an answer that was drawn from a filtered
distribution, what the filters added is taken off again (`backends.filtering` says why). Where the server did
not tell how much that was, its tokens are scored as if it had told no log-probs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from goodbot.api.backend import TrainingBackend
from goodbot.api.sampler import TokenizedTurn
from goodbot.api.sentences import clause
from goodbot.base.errors import TrainingError
from goodbot.base.sampling import unlifted

from goodbot_training.backends.scoring import Tell, score
from goodbot_training.job.rollout import Rollout
from goodbot_training.job.types import Job, RatedSample, data_error, turn_of
from goodbot_training.round.reported import as_read

if TYPE_CHECKING:
    from goodbot.api.step import Floats

    from goodbot_training.round.checkpoints import Scores

_COLDER = 2.0
"""A gradient grows with 1/T. So an answer that is said to be drawn much colder than most weighs less: at most
twice what it would at their temperature."""


def sift(job: Job, backend: TrainingBackend) -> tuple[Job, dict[str, int]]:
    """The job with only the items that this model can read, and the tokens of those that are not too long.

    What else a turn holds, and whoever sent it, is no reason to end the round: it is in `refused` then.
    """
    lengths: dict[str, int] = {}
    refused = dict(job.refused)
    read: list[RatedSample] = []
    for item in job.items:
        one, why = _sound(item, backend, lengths)
        if why:
            refused[turn_of(item.id)] = why
        read.append(one)
    items = tuple(item for item in read if turn_of(item.id) not in refused)
    limit = job.settings.max_sequence_tokens
    short = {item.id: length for item in items if (length := lengths[item.id]) <= limit}
    return replace(job, items=items, refused=refused), short


def readable(backend: TrainingBackend, item: RatedSample) -> TokenizedTurn:
    """An item's token ids. Raises TrainingError(kind="data"), whatever the template does: it is a program."""
    try:
        return _turn(item, backend)
    except (TrainingError, MemoryError):
        raise
    except Exception as error:
        raise data_error(
            f"The model's chat template fails with {type(error).__name__} on this conversation."
        ) from error


def _sound(item: RatedSample, backend: TrainingBackend, lengths: dict[str, int]) -> tuple[RatedSample, str]:
    """What is read of an item, and why nothing is; as in `_unreadable`."""
    why = _unreadable(item, backend, lengths)
    read = as_read(item, backend)
    return (item, why) if why or read is item else (read, _unreadable(read, backend, lengths))


def _unreadable(item: RatedSample, backend: TrainingBackend, lengths: dict[str, int]) -> str:
    """Why no rollout can be made of an item, empty if one can; then its length is in `lengths`."""
    try:
        turn = readable(backend, item)
    except TrainingError as error:
        if error.kind != "data":
            raise
        return clause(str(error))
    if not turn.prompt or not turn.response:
        return "it has no prompt or no response tokens"
    known = getattr(backend, "vocabulary", None)  # a backend of a plugin need not tell
    if known is not None and max(max(turn.prompt), max(turn.response)) >= known:
        return "it has token ids that this model does not know"
    lengths[item.id] = len(turn.prompt) + len(turn.response)
    return ""


def build_rollouts(
    job: Job, backend: TrainingBackend, known: Scores | None = None, tell: Tell | None = None
) -> tuple[list[Rollout], int]:
    """The job's rollouts in their order, and how many turns were too long and are left out.

    Each log-prob is computed once a round, or is `known` from before an interruption. `tell` hears of
    those that the base has read. Afterwards the backend holds the job's parent adapter, as it did
    before. Raises TrainingError(kind="data").
    """
    limit = job.settings.max_sequence_tokens
    kept = [  # one at a time: the ids of what is too long are not kept
        (item, turn)
        for item, turn in ((item, _turn(item, backend)) for item in job.items)
        if len(turn.prompt) + len(turn.response) <= limit
    ]
    if not kept:
        raise data_error("There is no rated turn to train on.")
    items = [item for item, _ in kept]
    sequences = [turn for _, turn in kept]
    temperatures = [item.temperature or 1.0 for item in items]
    typical = job.usual or 1.0
    budget = job.settings.tokens_per_forward
    if known is not None:
        reference = [np.asarray(known.reference[item.id], np.float32) for item in items]
        sampling = [np.asarray(known.sampling[item.id], np.float32) for item in items]
    else:
        reference = score(backend, sequences, temperatures, adapter=False, budget=budget, tell=tell)
        sampling = _sampling(job, backend, items, sequences, temperatures, reference)
    rollouts = [
        Rollout(
            id=item.id,
            turn=turn,
            temperature=temperature,
            reward=item.reward,
            weight=item.weight * min(1.0, _COLDER * temperature / typical),
            split=item.split,
            sampling_logprobs=behaviour,
            reference_logprobs=base,
            off_policy=not (item.scored or item.demonstration or _known(item, job)),
            demonstration=item.demonstration,
        )
        for item, turn, temperature, behaviour, base in zip(
            items, sequences, temperatures, sampling, reference, strict=True
        )
    ]
    return rollouts, len(job.rated) - sum(not item.demonstration for item in items)


def _turn(item: RatedSample, backend: TrainingBackend) -> TokenizedTurn:
    if item.captured:
        return TokenizedTurn(prompt=item.prompt_tokens, response=item.tokens)
    if item.thought:
        return backend.tokenize(item.messages, item.response, item.thought)
    return backend.tokenize(item.messages, item.response)


def _known(item: RatedSample, job: Job) -> bool:
    return item.version is not None and (item.version == 0 or item.version in job.behaviour)


def _sampling(
    job: Job,
    backend: TrainingBackend,
    items: Sequence[RatedSample],
    sequences: Sequence[TokenizedTurn],
    temperatures: Sequence[float],
    reference: Sequence[Floats],
) -> list[Floats]:
    result = list(reference)
    versions: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        if item.scored:
            with np.errstate(over="ignore"):  # what is no finite number then is left out
                result[index] = np.asarray(unlifted(item.logprobs, item.lifts), np.float32)
        elif item.version and _known(item, job):
            versions.setdefault(item.version, []).append(index)
    for version, indices in sorted(versions.items()):
        backend.load_adapter(job.behaviour[version])
        rows = score(
            backend,
            [sequences[i] for i in indices],
            [temperatures[i] for i in indices],
            adapter=True,
            budget=job.settings.tokens_per_forward,
        )
        for index, row in zip(indices, rows, strict=True):
            result[index] = row
    if versions:
        backend.load_adapter(job.parent)
    return result
