"""One decoding step in MLX; the loop around it is `goodbot_training.backends.decoding`."""

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
        self._cache = make_prompt_cache(causal)

    def read(self, inputs: Any, rows: Sequence[int]) -> None:
        """Take a prompt in once for several rows; see `Steps.read`."""
        self._causal(mx.array(inputs), cache=self._cache)
        order = mx.array(list(rows))
        for layer in self._cache:
            layer.state = tree_map(
                lambda part: part[order] if isinstance(part, mx.array) else part, layer.state
            )
        mx.eval([layer.state for layer in self._cache])

    def __call__(
        self, inputs: Any, temperatures: Any, uniforms: Any
    ) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        output = self._causal(mx.array(inputs), cache=self._cache)
        temperature = mx.array(temperatures)[:, None]
        greedy = temperature <= 0
        logits = output[:, -1].astype(mx.float32) / mx.where(greedy, 1.0, temperature)
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        mass = mx.cumsum(mx.exp(logprobs), axis=-1)
        at = mx.array(uniforms)[:, None] * mass[:, -1:]
        drawn = mx.minimum((mass <= at).sum(axis=-1, keepdims=True), mass.shape[-1] - 1)
        drawn = mx.where(greedy, logits.argmax(axis=-1, keepdims=True), drawn)
        chosen = mx.take_along_axis(logprobs, drawn, axis=1)
        mx.eval(drawn, chosen)
        tokens: Any = drawn[:, 0].tolist()
        scores: Any = chosen[:, 0].tolist()
        return tokens, scores
