# SPDX-License-Identifier: Apache-2.0
"""What a model would cost on this machine: memory, and seconds. Figures to choose by, not promises.

Memory, in bytes: serving holds the weights and the KV cache; training holds the weights once more,
16 bytes for each LoRA weight (it, its gradient, two moments), the activations of one forward pass and
the logits of its answers. How many tokens go through at once is what can be chosen, so training fits
where at least `FEWEST` do.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.model_shape import Architecture
from goodbot.base.machine.device import SHARE, Device

FEWEST = 1024
"""Tokens of a turn that training must have room for."""
MOST = 4096
"""Tokens of the longest turn that the trainers take."""
SLOWEST = 20.0
"""Seconds for an answer beyond which `auto` does not propose a model."""
ANSWER = 100
PROMPT = 400
"""Tokens of a usual answer and of what stands before it; the time of an answer is for these."""
ASKED = 100
"""Tokens before an answer in the round whose time is shown: a question with a line of instructions.
The first ratings are of such; with long conversations `train --dry-run` counts what there is."""

CHUNK = 1 << 24
"""Logits that a trainer has at the same time: 64 MiB in fp32."""
_RUNTIME = 600_000_000
"""Bytes of a process before it holds a model: Python and the framework."""
_RANK = 8
_CONTEXT = 4096
_RATINGS, _STEPS, _BATCH, _ANCHORS, _ANCHOR_TOKENS = 40, 32, 8, 96, 64
"""A round by default (`goodbot_training.job.settings`): 8 passes over 32 ratings; the gate mostly samples
64 answers of the base and 128 of the candidate, 96 each on average."""
_CACHED = 16_384
"""Tokens, prompts and all, of the answers that the gate samples together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEstimate:
    """Of one model on one machine with one backend."""

    serving: int
    training: int
    """Bytes of memory of the two processes; both run at the same time. A training's are those of the
    longest turns that it has room for."""
    usual: int
    """Bytes of a training of short questions, as those that the time is for."""
    limit: int
    """Bytes that they may take together."""
    tokens: int
    """That can go through one training pass; 0 where too few would fit."""
    answer: float
    """Seconds for an answer of `ANSWER` tokens."""
    round: float
    """Seconds for a training on 40 ratings of short questions."""

    @property
    def fits(self) -> bool:
        """Whether serving and training fit at the same time."""
        return self.tokens > 0


def estimate(model: Architecture, place: Device, stored: int) -> ModelEstimate:
    """Estimate what a model costs on a machine.

    Args:
        model: Its shape.
        place: Where it is to run.
        stored: Bytes of its weight files.

    Returns:
        Memory in bytes, times in seconds, and how many tokens fit.
    """
    limit = int(SHARE * place.memory)
    weights = _weights(model, place, stored)
    served = serving(model, place, stored)
    fixed = training(model, place, stored, tokens=0) + logits(model, MOST)
    token = activations(model, _kept(place))
    tokens = min(MOST, int((limit - served - fixed) / token) // 256 * 256)
    if tokens < FEWEST:
        tokens = 0
    most = tokens or FEWEST
    return ModelEstimate(
        serving=served,
        training=training(model, place, stored, tokens=most),
        usual=training(model, place, stored, tokens=min(most, _BATCH * (ASKED + ANSWER))),
        limit=limit,
        tokens=tokens,
        answer=_answer(model, place, weights),
        round=_round(model, place, weights),
    )


def serving(model: Architecture, place: Device, stored: int) -> int:
    """Estimate the process that answers: the weights, and the KV cache of one long conversation.

    With torch on a CPU a head that is the embedding, too, is there twice: once as its products want it.

    Args:
        model: Its shape.
        place: Where it is to run.
        stored: Bytes of its weight files.

    Returns:
        Bytes.
    """
    cache = model.kv * _width(place) * min(_CONTEXT, model.context)
    twice = model.tied and (place.backend, place.device) == ("torch", "cpu")
    head = model.head * _width(place) if twice else 0
    return _weights(model, place, stored) + _RUNTIME + cache + head


def training(
    model: Architecture,
    place: Device,
    stored: int,
    *,
    tokens: int,
    rank: int = _RANK,
    bits: int | None = None,
) -> int:
    """Estimate the process that trains.

    Args:
        model: Its shape.
        place: Where it is to run.
        stored: Bytes of its weight files.
        tokens: How many tokens go through at once.
        rank: The rank of the adapter.
        bits: 4 where the frozen base is quantized so far; None: as it is stored.

    Returns:
        Bytes.
    """
    weights = _weights(model, place, stored)
    if bits == 4:  # with a scale for each 64 of them
        weights = model.body * 9 // 16 + (model.parameters - model.body) * _width(place)
    fixed = weights + _RUNTIME + 16 * model.lora(rank)
    return fixed + activations(model, _kept(place)) * tokens + logits(model, tokens)


def _weights(model: Architecture, place: Device, stored: int) -> int:
    return stored if place.device == "metal" else model.parameters * _width(place)


def _width(place: Device) -> int:
    return 4 if place.device == "cpu" else 2


def activations(model: Architecture, width: int) -> int:
    """Bytes that one token leaves behind in all layers until the backward pass.

    What the norms, the projections, the attention and the gate keep, fitted to what the torch backend was
    measured to take on four shapes, up to a quarter above it; `width` is that of a number: 4 in fp32,
    about 3 with a half-precision base, as LoRA's own part is in fp32 even then.
    """
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    kept = 9 * model.hidden + 3 * queries + 6 * keys + 4 * model.intermediate
    return model.layers * kept * width


def between(model: Architecture, width: int) -> int:
    """Bytes that one token's forward pass reads and writes between the matrix products of all layers.

    By the operations of the backends: 7 of the hidden size a norm, 3 a residual; 8 of queries and
    keys to turn them; 5 of each projection's outputs to add what LoRA says, and of the feed-forward's
    width for its gate. A backward pass takes twice as much. No product is so fast that this is nothing:
    of 135 million weights it is a fifth of a step on a processor.
    """
    turned = (model.heads + model.kv_heads) * model.head_dim
    shared = 20 * model.hidden + 8 * turned + 5 * model.intermediate
    outputs = sum(p.outputs * p.active for p in model.projections if p.adapted)
    return (model.layers * shared + 5 * outputs) * width


def logits(model: Architecture, tokens: int) -> int:
    """Bytes of the logits of so many tokens: as they are, scaled, and their gradient.

    The trainers make them a chunk at a time (`goodbot_training.backends.head`).
    """
    return 12 * model.vocabulary * min(tokens, max(1, CHUNK // model.vocabulary))


def _kept(place: Device) -> int:
    """Bytes of a number that waits for the backward pass."""
    return 4 if place.device == "cpu" else 3


def _answer(model: Architecture, place: Device, weights: int) -> float:
    reading = 2 * model.active * PROMPT / place.flops
    return reading + ANSWER * _token(model, place, weights)


def _token(model: Architecture, place: Device, weights: int) -> float:
    read = weights * min(1.0, model.active / model.parameters)  # of the experts, those that it meets
    return model.layers * place.step + read / place.bandwidth


def _round(model: Architecture, place: Device, weights: int) -> float:
    turn = ASKED + ANSWER
    scoring = 2 * _RATINGS * 2 * model.active * turn
    training = _STEPS * _BATCH * (4 * model.active_body * turn + 4 * model.head * ANSWER)
    moving = 3 * _STEPS * _BATCH * turn * between(model, _kept(place)) / place.bandwidth
    judging = 2 * _ANCHORS * 2 * model.active * (ASKED + 2 * _ANCHOR_TOKENS)
    batches = 2 * _ANCHORS * (ASKED + _ANCHOR_TOKENS) / _CACHED
    sampling = batches * _ANCHOR_TOKENS * _token(model, place, weights)
    loading = weights / 5e8
    return (scoring + training + judging) / place.flops + moving + sampling + loading
