"""One decoding step in MLX; the loop around it is `goodbot_training.backends.decoding`."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache


class MlxDecoder:
    """A causal LM with the KV cache of the answers that are being written."""

    def __init__(self, causal: Any) -> None:
        self._causal = causal
        self._cache = make_prompt_cache(causal)

    def __call__(
        self, inputs: Any, temperatures: Any, uniforms: Any
    ) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Decoder.decoder`."""
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
