# SPDX-License-Identifier: Apache-2.0
"""Answers to requests that are all known beforehand: as many as fit are written together.

Where the model's cache can (`abilities`), prompts are read in groups of like length, each once however
often it is asked, and all rows are then written in one batch, whose passes cost little more than
those of a single row. Where it cannot, rows of about equal length are at the same place of it, and
one that is still in its prompt takes its next token from there: no padding, no mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from goodbot.api.sampler import Sampled, SampleRequest

from goodbot_training.backends.abilities import Abilities
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.decoding import Batchable, BatchableDecoder, Decoder, Row, Steps, drawn

_ROWS = 128
"""Answers that grow together at most."""
CACHED = 16_384
"""Tokens in the KV cache of answers that grow together: 2.4 GB for a model of 8 billion weights."""
_SPREAD = 64
"""Tokens by which prompts may differ that are read together."""
_ENDED = 0.25
"""Of the rows of a batch: where so many have ended, the others go on without them."""


def generate(
    model: Decoder,
    chat: ChatTemplate,
    requests: Sequence[SampleRequest],
    on_text: Callable[[str], bool] | None = None,
    *,
    abilities: Abilities | None = None,
) -> list[Sampled]:
    """One answer a request, in their order.

    `on_text` gets each new piece of text (it may be empty) and is for a single request. Without
    `abilities` nothing is believed of the model's cache.
    """
    prompts = [chat.prompt(request.messages, thinking=request.thinking) for request in requests]
    room = max((request.max_tokens for request in requests), default=0)
    lengths = [len(prompt) for prompt in prompts]
    mixes = mixed(abilities, lengths)
    answers: dict[int, Sampled] = {}
    for members in together(lengths, room, spread=None if mixes else _SPREAD):
        rows = [Row(prompts[i], requests[i], chat, model.context, on_text) for i in members]
        if mixes and abilities is not None and len(rows) > 1:
            _write(*_read(abilities.model, rows, pads=abilities.pads), rows, chat.stops)
        else:
            _keep_pace(model.decoder(), rows, chat.stops)
        answers.update({i: row.result() for i, row in zip(members, rows, strict=True)})
    return [answers[index] for index in range(len(requests))]


def mixed(abilities: Abilities | None, lengths: Sequence[int]) -> bool:
    """Whether prompts of these lengths may be answered in one batch."""
    return abilities is not None and len(lengths) > 1 and min(lengths) > 1 and abilities.mixes


def together(lengths: Sequence[int], room: int = 0, *, spread: int | None = _SPREAD) -> list[list[int]]:
    """Indices by length, shortest first, in groups that are not too large and differ by `spread` at most.

    `room` is what an answer may add to its prompt, in tokens.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        group = groups[-1] if groups else []
        longest = lengths[index] + room
        rows = min(_ROWS, CACHED // max(longest, 1))
        near = bool(group) and (spread is None or lengths[index] <= lengths[group[0]] + spread)
        if near and len(group) < rows:
            group.append(index)
        else:
            groups.append([index])
    return groups


def _read(model: BatchableDecoder, rows: Sequence[Row], *, pads: bool) -> tuple[Batchable, np.ndarray]:
    """All but the last token of each prompt, in one cache; and those last tokens, `(B, 1)`."""
    starts = [row.prompt[:-1] for row in rows]
    different = list(dict.fromkeys(starts))
    groups = [[number] for number in range(len(different))]
    if pads:
        groups = together([len(start) for start in different])
    steps, order = None, list[int]()
    for members in groups:
        read = _read_group(model, [different[number] for number in members])
        order += members
        if steps is None:
            steps = read
        else:
            steps.join(read)
    assert steps is not None  # noqa: S101  there are rows
    places = {different[number]: place for place, number in enumerate(order)}
    wanted = [places[start] for start in starts]
    if wanted != list(range(len(order))):
        steps.select(wanted)
    return steps, np.asarray([row.prompt[-1:] for row in rows], np.int64)


def _read_group(model: BatchableDecoder, prompts: Sequence[tuple[int, ...]]) -> Batchable:
    steps = model.decoder()
    longest = max(map(len, prompts))
    if len(prompts) > 1:
        steps.begin([len(prompt) for prompt in prompts])
    padded = [(0,) * (longest - len(prompt)) + prompt for prompt in prompts]
    steps.read(np.asarray(padded, np.int64))
    return steps


def _write(steps: Steps, inputs: np.ndarray, rows: Sequence[Row], stops: frozenset[int]) -> None:
    """Token after token, until the last row ends."""
    alive = list(rows)
    while alive:
        tokens = _draw(steps, inputs, alive, stops)
        inputs = np.asarray(tokens, np.int64)[:, None]
        kept = [number for number, row in enumerate(alive) if not row.finish]
        if not kept or len(kept) <= (1 - _ENDED) * len(alive):
            alive, inputs = [alive[number] for number in kept], inputs[kept]
            if alive:
                steps.select(kept)


def _keep_pace(steps: Steps, rows: Sequence[Row], stops: frozenset[int]) -> None:
    """Rows at the same place of the cache; what several of them begin with is read once."""
    place = min(len(row.prompt) for row in rows)
    starts = [row.prompt[: place - 1] for row in rows]
    different = {start: number for number, start in enumerate(dict.fromkeys(starts))}
    read = 0
    if len(different) < len(rows) and place > 1:
        steps.read(np.asarray([*different], np.int64))
        steps.select([different[start] for start in starts])
        read = place - 1
    inputs = np.asarray([row.prompt[read:place] for row in rows], np.int64)
    while not all(row.finish for row in rows):
        tokens = _draw(steps, inputs, rows, stops, place)
        inputs = np.asarray(
            [
                row.prompt[place] if place < len(row.prompt) else token
                for row, token in zip(rows, tokens, strict=True)
            ],
            np.int64,
        )[:, None]
        place += 1


def _draw(
    steps: Steps, inputs: np.ndarray, rows: Sequence[Row], stops: frozenset[int], place: int | None = None
) -> list[int]:
    """The next token of each row; those go on by it whose prompt is read at `place` of the cache."""
    speaking = [not row.finish and (place is None or place >= len(row.prompt)) for row in rows]
    uniforms = [row.uniform() if own else 0.0 for row, own in zip(rows, speaking, strict=True)]
    found = drawn(steps, inputs, rows, uniforms)
    for row, (token, logprob, lift), own in zip(rows, found, speaking, strict=True):
        if own:
            row.add(token, logprob, stops, lift)
    return [token for token, _, _ in found]
