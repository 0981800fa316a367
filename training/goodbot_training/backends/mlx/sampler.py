# SPDX-License-Identifier: Apache-2.0
"""One decoding step in MLX; the loop around it is `goodbot_training.backends.decoding`'s."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from goodbot.base.sampling import Filters
from mlx.utils import tree_map
from mlx_lm.models.cache import make_prompt_cache

from goodbot_training.backends.decoding import Filtered
from goodbot_training.backends.filtering import Cuts, keep, penalize, pick


class MlxDecoder:
    """A causal LM with the KV cache of the answers that are being written."""

    def __init__(self, causal: Any) -> None:
        self._causal = causal
        self._cache: list[Any] = make_prompt_cache(causal)

    def read(self, inputs: Any) -> None:
        """Take ids in without drawing; see `Steps`."""
        self._forward(inputs)
        mx.eval([layer.state for layer in self._cache])
        mx.clear_cache()

    def __call__(self, inputs: Any, temperatures: Any, uniforms: Any) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        logits = heated(self._last(inputs)[:, -1], temperatures)
        drawn, chosen = draw(normal(logits), temperatures, uniforms)
        mx.eval(drawn, chosen)
        tokens: Any = drawn.tolist()
        scores: Any = chosen.tolist()
        return tokens, scores

    def filtered(
        self, inputs: Any, temperatures: Any, uniforms: Any, rows: Sequence[Filtered]
    ) -> tuple[list[int], list[float], list[float]]:
        """Draw a token a row, some from less than the whole distribution; see `Steps`."""
        logits = heated(self._last(inputs)[:, -1], temperatures)
        own = logprobs = normal(logits)
        factors = [row.filters.repetition_penalty for row in rows]
        if any(factor != 1 for factor in factors):
            said = [marked(row.said, logits.shape[-1]) for row in rows]
            logprobs = normal(penalized(logits, mx.stack(said), factors))
        drawn, chosen = draw_filtered(logprobs, temperatures, uniforms, [row.filters for row in rows])
        lifts = chosen - mx.take_along_axis(own, drawn[:, None], axis=1)[:, 0]
        mx.eval(drawn, chosen, lifts)
        told: Any = (drawn.tolist(), chosen.tolist(), lifts.tolist())
        return told

    def likeliest(self, inputs: Any, top: int) -> tuple[list[int], list[float]]:
        """The likeliest next tokens of one row; see `Steps`."""
        logits = self._last(inputs)[0, -1].astype(mx.float32)
        logprobs = logits - mx.logsumexp(logits)
        places = mx.argsort(-logprobs)[:top]
        found: Any = (places.tolist(), logprobs[places].tolist())
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows; see `Steps`."""
        order = mx.array(list(rows))
        for layer in self._cache:
            layer.state = tree_map(
                lambda part: part[order] if isinstance(part, mx.array) else part, layer.state
            )
        mx.eval([layer.state for layer in self._cache])

    def _last(self, inputs: Any) -> mx.array:
        """Logits of the last place alone, `(B, 1, V)`: nothing asks for those before it, so MLX never
        computes what only they need, the head above all."""
        if inputs.shape[1] > 1:
            self._forward(inputs[:, :-1])
        return self._forward(inputs[:, -1:])

    def _forward(self, inputs: Any) -> mx.array:
        return self._causal(mx.array(inputs), cache=self._cache)


def heated(logits: mx.array, temperatures: Any) -> mx.array:
    """Logits `(B, …)` in fp32, at the temperatures of their rows; 0 counts as 1."""
    temperature = mx.array(temperatures).reshape(-1, *[1] * (logits.ndim - 1))
    return logits.astype(mx.float32) / mx.where(temperature <= 0, 1.0, temperature)


def draw(logprobs: mx.array, temperatures: Any, uniforms: Any) -> tuple[mx.array, mx.array]:
    """`(B, V)` → the token that each row's uniform falls on, and its log-prob: `(B,)`. Temperature 0
    takes the likeliest."""
    mass = mx.cumsum(mx.exp(logprobs), axis=-1)
    at = mx.array(uniforms)[:, None] * mass[:, -1:]
    drawn = mx.minimum((mass <= at).sum(axis=-1, keepdims=True), mass.shape[-1] - 1)
    greedy = mx.array(temperatures)[:, None] <= 0
    drawn = mx.where(greedy, logprobs.argmax(axis=-1, keepdims=True), drawn)
    return drawn[:, 0], mx.take_along_axis(logprobs, drawn, axis=1)[:, 0]


def normal(logits: mx.array) -> mx.array:
    """Log-probs of logits, `(…, V)`."""
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def marked(tokens: Sequence[int], vocabulary: int) -> mx.array:
    """`(V,)`: which tokens were said, as booleans."""
    marks = mx.zeros((vocabulary,), mx.bool_)
    if tokens:
        marks[mx.array(list(tokens))] = True
    return marks


def penalized(logits: mx.array, said: mx.array, factors: Sequence[float]) -> mx.array:
    """Logits `(B, …, V)` with those that were `said` `(B, V)` penalized by their rows' factors."""
    shape = (-1, *[1] * (logits.ndim - 1))
    factor = mx.array(list(factors), mx.float32).reshape(shape)
    said = said.reshape(said.shape[0], *[1] * (logits.ndim - 2), -1)
    return mx.where(said, penalize(mx, logits, factor), logits)


def draw_filtered(
    logprobs: mx.array, temperatures: Any, uniforms: Any, filters: Sequence[Filters]
) -> tuple[mx.array, mx.array]:
    """As `draw`, each row out of what its filters keep, and its log-prob there.

    Nothing is computed before it is asked for: so all are sorted where `top_k` does not say how many.
    """
    drawn, chosen = draw(logprobs, temperatures, uniforms)
    cut = [n for n, one in enumerate(filters) if one.cuts and temperatures[n] > 0]
    if not cut:
        return drawn, chosen
    rows, vocabulary = mx.array(cut), logprobs.shape[-1]
    cuts = Cuts.of([filters[n] for n in cut], vocabulary)
    most = int(cuts.top_k.max())
    here = logprobs[rows]
    order = -here
    tokens = mx.argpartition(order, most - 1, axis=-1)[:, :most] if most < vocabulary else None
    if tokens is None:
        tokens = mx.argsort(order, axis=-1)
    else:
        among = mx.argsort(mx.take_along_axis(order, tokens, axis=1), axis=-1)
        tokens = mx.take_along_axis(tokens, among, axis=1)
    top = mx.take_along_axis(here, tokens, axis=1)
    kept = keep(mx, top, mx.array(cuts.top_k), mx.array(cuts.top_p), mx.array(cuts.low))
    place, logprob = pick(mx, top, kept, mx.array(np.asarray(uniforms, np.float32)[cut][:, None]))
    drawn[rows] = mx.take_along_axis(tokens, place, axis=1)[:, 0].astype(drawn.dtype)
    chosen[rows] = logprob[:, 0]
    return drawn, chosen
