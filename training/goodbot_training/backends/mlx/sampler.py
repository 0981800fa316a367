"""One decoding step in MLX; the loop around it is `goodbot_training.backends.decoding`'s."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import make_prompt_cache


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

    def __call__(
        self, inputs: Any, temperatures: Any, uniforms: Any
    ) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        logits = heated(self._last(inputs)[:, -1], temperatures)
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        drawn, chosen = draw(logprobs, temperatures, uniforms)
        mx.eval(drawn, chosen)
        tokens: Any = drawn.tolist()
        scores: Any = chosen.tolist()
        return tokens, scores

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
