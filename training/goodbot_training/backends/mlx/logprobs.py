# SPDX-License-Identifier: Apache-2.0
"""Log-probs of response tokens from hidden states, without ever holding all logits."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from goodbot_training.backends.head import CHUNK, Bend


@dataclass(frozen=True, kw_only=True)
class Head:
    """The frozen map from hidden states to logits, and what bends these."""

    linear: Callable[[mx.array], mx.array]
    bend: Bend
    vocabulary: int

    def logits(self, hidden: mx.array) -> mx.array:
        """`(…, D)` → `(…, V)`, fp32."""
        logits = self.linear(hidden).astype(mx.float32) * self.bend.scale
        cap = self.bend.cap
        return logits if cap is None else cap * mx.tanh(logits / cap)


def chosen_logprobs(logits: mx.array, targets: mx.array, temperature: mx.array) -> mx.array:
    """`(N, V)`, `(N,)`, `(N,)` → log softmax(logits / temperature) at the targets, `(N,)`, fp32."""
    heated = logits.astype(mx.float32) / temperature[:, None]
    chosen = mx.take_along_axis(heated, targets[:, None], axis=1)
    return chosen[:, 0] - mx.logsumexp(heated, axis=1)


def token_logprobs(head: Head, hidden: mx.array, targets: mx.array, temperature: mx.array) -> mx.array:
    """As `chosen_logprobs` of the hidden states `(N, D)`, a chunk of logits at a time.

    A token's log-prob depends on one row only: its slope there is taken together with it, and
    times the incoming gradient it is the row's gradient. Nothing is computed twice, the head gets
    no gradient, and what nobody asks for MLX never computes.
    """
    rows = max(1, CHUNK // head.vocabulary)
    parts: list[mx.array] = []
    for start in range(0, hidden.shape[0], rows):
        part = slice(start, start + rows)
        parts.append(_chunk(head, targets[part], temperature[part])(hidden[part])[0])
    return mx.concatenate(parts)


def _chunk(head: Head, targets: mx.array, temperature: mx.array) -> Any:
    def value(hidden: mx.array) -> mx.array:
        return chosen_logprobs(head.logits(hidden), targets, temperature)

    @mx.custom_function
    def both(hidden: mx.array) -> tuple[mx.array, mx.array]:
        values, slopes = mx.vjp(value, [hidden], [mx.ones(targets.shape)])
        return values[0], slopes[0]

    @both.vjp
    def gradient(primals: Any, cotangents: Any, outputs: Any) -> mx.array:
        return cotangents[0][:, None].astype(outputs[1].dtype) * outputs[1]

    return both


def find_head(causal: Any, bends: list[Bend]) -> Head | None:
    """What turns hidden states into the model's own logits, or None where we cannot tell.

    Found by structure, and believed only if it gives the same logits.
    """
    body: Any = getattr(causal, "model", None)
    candidates: list[Any] = [getattr(causal, "lm_head", None)]
    candidates.append(getattr(getattr(body, "embed_tokens", None), "as_linear", None))
    ids = mx.array([[0, 1, 2, 3]])
    for linear in candidates:
        for bend in reversed(bends) if linear else ():
            try:
                hidden, whole = body(ids), causal(ids)
                head = Head(linear=linear, bend=bend, vocabulary=whole.shape[-1])
                if bool(mx.allclose(head.logits(hidden), whole, atol=1e-3, rtol=1e-2)):
                    return head
            except (TypeError, ValueError, AttributeError):
                continue
    return None
