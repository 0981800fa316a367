"""One decoding step in MLX; the loops around it are `goodbot_training.backends.decoding` and `batching`."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache


class MlxDecoder:
    """A causal LM with the KV cache of the answers that are being written.

    Rows that have come together from the start share a plain cache. Rows that have joined are in
    mlx-lm's batch caches, padded on the left; a row that is left alone goes back to a plain one.
    """

    def __init__(self, causal: Any) -> None:
        self._causal = causal
        self._cache: list[Any] = make_prompt_cache(causal)
        self._rows = 0
        self._batched = False

    def begin(self, lengths: Sequence[int]) -> None:
        """Rows of these lengths come first; see `Steps`."""
        self._cache = [layer.merge([layer] * len(lengths)) for layer in self._cache]
        self._batched = True
        for layer in self._cache:
            layer.prepare(left_padding=[max(lengths) - length for length in lengths])

    def read(self, inputs: Any) -> None:
        """Take ids in without drawing; see `Steps`."""
        self._forward(inputs)
        mx.eval([layer.state for layer in self._cache])
        mx.clear_cache()

    def __call__(
        self, inputs: Any, temperatures: Any, uniforms: Any
    ) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        output = self._last(inputs)
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

    def likeliest(self, inputs: Any, top: int) -> tuple[list[int], list[float]]:
        """The likeliest next tokens of one row; see `Steps`."""
        logits = self._last(inputs)[0, -1].astype(mx.float32)
        logprobs = logits - mx.logsumexp(logits)
        places = mx.argsort(-logprobs)[:top]
        found: Any = (places.tolist(), logprobs[places].tolist())
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows; see `Steps`."""
        self._rows = len(rows)
        if self._batched and len(rows) == 1:
            self._cache = [layer.extract(rows[0]) for layer in self._cache]
            self._batched = False
            return
        order = mx.array(list(rows))
        for layer in self._cache:
            if self._batched:
                layer.filter(order)
            else:
                layer.state = tree_map(
                    lambda part: part[order] if isinstance(part, mx.array) else part, layer.state
                )
        mx.eval([layer.state for layer in self._cache])

    def join(self, other: Any) -> None:
        """Take in another's rows; see `Steps`."""
        mine, theirs = self._batch(), other._batch()  # noqa: SLF001  of the same class
        for layer, more in zip(mine, theirs, strict=True):
            layer.extend(more)
        self._cache, self._batched = mine, True
        self._rows += other._rows  # noqa: SLF001
        mx.eval([layer.state for layer in self._cache])

    def split(self, row: int) -> MlxDecoder:
        """A copy of one row; see `Steps`."""
        alone = MlxDecoder(self._causal)
        alone._rows = 1
        if self._batched:
            alone._cache = [layer.extract(row) for layer in self._cache]
        else:
            alone._cache, alone._rows = copy.deepcopy(self._cache), self._rows
            alone.select([row])
        return alone

    def crop(self, tokens: int) -> bool:
        """Forget the newest tokens; see `Steps`."""
        if self._batched or not can_trim_prompt_cache(self._cache):
            return False
        return trim_prompt_cache(self._cache, tokens) == tokens

    def _last(self, inputs: Any) -> mx.array:
        """Logits of the last place alone, `(B, 1, V)`: nothing asks for those before it, so MLX never
        computes what only they need, the head above all."""
        if inputs.shape[1] > 1:
            self._forward(inputs[:, :-1])
        return self._forward(inputs[:, -1:])

    def _forward(self, inputs: Any) -> mx.array:
        self._rows = len(inputs)
        return self._causal(mx.array(inputs), cache=self._cache)

    def _batch(self) -> list[Any]:
        """This cache as mlx-lm's batch caches. Raises NotImplementedError where it has none."""
        if self._batched:
            return self._cache
        if self._rows != 1 or not all(hasattr(layer, "merge") for layer in self._cache):
            raise NotImplementedError("this cache cannot be joined")
        return [layer.merge([layer]) for layer in self._cache]
