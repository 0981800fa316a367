# SPDX-License-Identifier: Apache-2.0
"""The cost of a round by its operations, for models of which one step takes long; nothing is loaded.

With N_b the weights of the layers that a token meets, N_lora those of the adapter, H = hidden times
vocabulary, S tokens of which R of the response, in floating point operations:

    scoring = 2 S (N_b + H) a policy     training = S (4 N_b + 6 N_lora) + 4 R H  (+ 2 S N_b recomputed)

divided by the rate of matrix products that this processor is measured at, in less than a second, or
by what a small GPU of its kind does (`goodbot.base.machine.device`). What lies between the products is
bytes that are read and written (`estimate.between` beside it), three times in training. A sampled token
takes reading the weights that it meets, once for all rows of a batch, and its own forward pass. A
text has, beside its own tokens, those of the chat template, as the rated answers tell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from goodbot.api import estimate
from goodbot.api.events import Message
from goodbot.api.model_shape import Architecture
from goodbot.base.machine.device import Device, place

from goodbot_training.backends.generating import CACHED
from goodbot_training.gate.measure import PORTION
from goodbot_training.job.presets import adapted
from goodbot_training.job.types import HELD_OUT, Job, RatedSample, data_error
from goodbot_training.memory.fit import Memory
from goodbot_training.objectives import Objective, make_objective
from goodbot_training.objectives.advantages import to_learn
from goodbot_training.planning.cost import Cost, RoundEstimate
from goodbot_training.planning.gate import portions
from goodbot_training.round import hindsight, notes, restart
from goodbot_training.round.batches import planned_steps
from goodbot_training.round.contested import settled

_LETTERS = 4
"""Of a text in a token, where the server gave no tokens."""
_DISK = 5e8
"""Bytes a second that weights are read with."""
_IMPORTS = 6.0
"""Seconds of a process before it loads a model."""
_CALIBRATION = 0.2

Row = tuple[RatedSample, int, int]
"""A rated answer, with the tokens of its prompt and of its response."""


def step_seconds(job: Job, shape: Architecture, backend: str) -> float:
    """Of one optimizer step, by the formula."""
    rows = [row[1:] for row in _kept(job, _marks(job))] or [(1, 1)]
    mean = [sum(side) / len(rows) for side in zip(*rows, strict=True)]
    here = place(backend)
    flops = training_flops(mean[0] + mean[1], mean[1], shape, shape.lora(job.settings.rank))
    return job.settings.batch_size * (flops / here.flops + sum(mean) * _moving(shape, here))


def training_flops(
    tokens: float, response: float, shape: Architecture, lora: int, *, recompute: bool = False
) -> float:
    """Of a forward and a backward pass over so many tokens, of which some are responses."""
    body = (6 if recompute else 4) * shape.active_body
    return tokens * (body + 6 * _met(shape, lora)) + 4 * response * shape.head


def _met(shape: Architecture, lora: int) -> float:
    """The adapter's weights that one token is multiplied with."""
    return lora * shape.active_body / shape.body if shape.body else lora


def count(job: Job, shape: Architecture, backend: str, memory: Memory) -> RoundEstimate:
    """The estimate by the formula. Raises TrainingError where nothing is left or does not fit."""
    job, share = settled(job)
    settings = job.settings
    marks = _marks(job)
    kept = _kept(job, marks)
    train = [row for row in kept if row[0].split != HELD_OUT and row[0].weight]
    if not train:
        raise data_error("There is no rated turn to train on.")
    lengths = [prompt + response for _, prompt, response in kept]
    objective = make_objective(settings)
    answered = _answered(job, train) if objective.hindsight else []
    plan = memory.plan([*lengths, *map(sum, answered)], job)
    here = place(backend)
    learnt = [row[1:] for row in train] + answered
    steps = planned_steps(len(learnt), settings)
    passes = steps * settings.batch_size / len(learnt)
    forward = 2 * shape.active / here.flops  # seconds a token
    one_pass = _learning(learnt, shape, here, shape.lora(settings.rank), recompute=plan.recompute)
    judged = sum(prompt + response for item, prompt, response in kept if item.split == HELD_OUT)
    portion = _portion(job, shape, here, forward, marks)
    parts = {
        "load": _IMPORTS + memory.fixed / _DISK,
        "rollouts": _scored(job, kept, objective) * forward + len(answered) / PORTION * portion,
        "train": passes * one_pass,
    }
    least, usual, most = (number * portion for number in portions(settings, tried=len(job.trials)))
    before = sum(parts.values()) + judged * forward
    parts["gate"] = judged * forward + usual
    cost = partial(_cost, threads=_threads(here))
    rate = settings.bolder * settings.rate_for(adapted(shape))
    return RoundEstimate(
        how="counted",
        train=_rated(train),
        held_out=len(kept) - len(train),
        too_long=len(job.rated) - _rated(kept),
        tokens=sum(lengths),
        longest=max(lengths),
        learning_rate=rate * _to_learn(job, objective, train),
        share=share,
        steps=steps,
        passes=passes,
        memory=plan,
        peak=0,
        parts={name: cost(seconds) for name, seconds in parts.items()},
        total=cost(before + usual),
        least=cost(before + least),
        most=cost(before + most),
    )


def _kept(job: Job, marks: float) -> list[Row]:
    """What is not too long."""
    rows: Iterator[Row] = ((item, *_tokens(item, marks)) for item in job.items)
    return [row for row in rows if row[1] + row[2] <= job.settings.max_sequence_tokens]


def _rated(rows: Sequence[Row]) -> int:
    """How many of them somebody rated."""
    return sum(not item.demonstration for item, _, _ in rows)


def _scored(job: Job, rows: Sequence[Row], objective: Objective) -> int:
    """Tokens of forward passes: an answer once for each policy, and what was said of it."""
    total = 0
    for item, prompt, response in rows:
        passes = 1 + (item.split == HELD_OUT) + (not item.captured and item.version in job.behaviour)
        if objective.hindsight:
            passes += hindsight.passes(job, item)
            total += _said(item)
        total += passes * (prompt + response)
    return total


def _learning(
    rows: Sequence[tuple[int, int]], shape: Architecture, here: Device, lora: int, *, recompute: bool
) -> float:
    """Seconds of one pass over all that is learnt."""
    flops = sum(training_flops(sum(row), row[1], shape, lora, recompute=recompute) for row in rows)
    return flops / here.flops + sum(map(sum, rows)) * _moving(shape, here)


def _answered(job: Job, train: Sequence[Row]) -> list[tuple[int, int]]:
    """Of the answers that notes teach: tokens of the prompt and of the response, at most."""
    most = job.settings.gate_max_tokens
    return [(prompt, most) for item, prompt, _ in train if notes.taught(job, item)]


def _to_learn(job: Job, objective: Objective, rows: Sequence[Row]) -> float:
    """The part of the learning rate that these ratings and demonstrations are worth."""
    rated = [item for item, _, _ in rows if not item.demonstration]
    rewards, weights = [item.reward for item in rated], [item.weight for item in rated]
    advantages, _ = restart.advantages(job, objective, rewards, weights)
    shown = [item.weight for item, _, _ in rows if item.demonstration]
    return to_learn(job.baseline, rewards, weights, advantages, shown)


def _said(item: RatedSample) -> int:
    """Tokens of what was said of it."""
    return sum(len(one.text) for one in item.hindsight) // _LETTERS


def _moving(shape: Architecture, here: Device) -> float:
    """Seconds for what lies between the products of a token's forward and backward pass."""
    return 3 * estimate.between(shape, 4 if here.device == "cpu" else 3) / here.bandwidth


def _portion(job: Job, shape: Architecture, here: Device, forward: float, marks: float) -> float:
    """Seconds of `PORTION` answers: prompts, then token after token, then their scores."""
    anchors = job.anchors or [item.messages for item in job.rated or job.items]
    prompt = marks + sum(_letters(messages) for messages in anchors) / len(anchors) / _LETTERS
    answer = job.settings.gate_max_tokens
    width = 4 if here.device == "cpu" else 2
    token = shape.layers * here.step + shape.active * width / here.bandwidth
    passes = answer * max(1.0, PORTION * (prompt + answer) / CACHED)
    return PORTION * 2 * (prompt + answer) * forward + passes * token


def _marks(job: Job) -> float:
    """Tokens of a prompt that are nobody's words: what the template adds, its own system line too."""
    known = [item for item in job.items if item.captured]
    found = [len(item.prompt_tokens) - _letters(item.messages) / _LETTERS for item in known]
    return max(0.0, sum(found) / len(found)) if found else 0.0


def _tokens(item: RatedSample, marks: float) -> tuple[int, int]:
    """Of the prompt and of the response."""
    if item.captured:
        return len(item.prompt_tokens), len(item.tokens)
    prompt = marks + _letters(item.messages) / _LETTERS
    return int(prompt) + 1, len(item.response) // _LETTERS + 1


def _letters(messages: Sequence[Message]) -> int:
    return sum(len(str(message["content"])) for message in messages)


def _threads(here: Device) -> float:
    """Processors that a matrix product keeps busy; beside a GPU one waits for it."""
    if here.device != "cpu":
        return 1.0
    matrix, cpu, wall = np.ones((768, 768), np.float32), time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < _CALIBRATION:
        np.matmul(matrix, matrix)
    return max(1.0, (time.process_time() - cpu) / (time.perf_counter() - wall))


def _cost(seconds: float, threads: float) -> Cost:
    return Cost(cpu=seconds * threads, wall=seconds)
