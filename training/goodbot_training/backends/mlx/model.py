# SPDX-License-Identifier: Apache-2.0
"""An mlx-lm causal LM with LoRA layers on every projection of every layer."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from goodbot.base.machine.device import openblas

if sys.platform == "linux":
    # With a C++ compiler present, each fused kernel would cost a second of compiling on first use.
    os.environ.setdefault("MLX_DISABLE_COMPILE", "1")
    openblas()

import mlx.core as mx
import numpy as np
from goodbot.api import model_shape
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded
from mlx.nn import quantize
from mlx_lm.utils import load_model

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.answers import By
from goodbot_training.backends.chat import ChatTemplate, context_of
from goodbot_training.backends.head import HIDDEN, bends
from goodbot_training.backends.mlx import targets
from goodbot_training.backends.mlx.batching import MlxBatching
from goodbot_training.backends.mlx.logprobs import chosen_logprobs, find_head, token_logprobs
from goodbot_training.backends.mlx.sampler import MlxDecoder
from goodbot_training.backends.packing import Packed
from goodbot_training.backends.row_adapters import RowAdapters

_GROUP = 32  # weights that share a scale; each projection's width must be a multiple of it
Prepared = tuple[AdapterWeights, dict[str, tuple[mx.array, mx.array]]]


class MlxModel:
    """The base as stored (fp32 on a CPU), or in 4 bits; LoRA and log-probs always in fp32."""

    def __init__(self, directory: Path, config: dict[str, Any], rank: int, bits: int | None) -> None:
        try:
            loaded = load_model(directory, trust_remote_code=False)
        except Exception as error:  # MLX raises RuntimeError for damaged weights, and for memory
            if "memory" in str(error) or "alloc" in str(error):
                raise
            odd = "The model in {directory} cannot be loaded by {name}."
            raise TrainingError(Worded(odd, directory=directory, name="MLX")) from error
        causal: Any = loaded[0]
        if mx.default_device().type == mx.cpu and "quantization" not in config:
            causal.set_dtype(mx.float32)  # half precision has no fast path on a CPU
        if bits is not None and "quantization" not in config:
            inside = {id(module) for layer in causal.layers for _, module in layer.named_modules()}
            # Before LoRA, and never the head or the embeddings.
            quantize(
                causal,
                group_size=_GROUP,
                bits=bits,
                class_predicate=lambda _, module: id(module) in inside and _fits(module),
            )
            mx.eval(causal.parameters())
        causal.eval()
        self.causal = causal
        self.experts = model_shape.experts(config)
        self.row_adapters = RowAdapters(mx.zeros, mx.array, mx.eval)
        self._layers = targets.inject(causal, rank, self.row_adapters)
        self.attention = targets.attention(causal, self._layers)
        # Experts see tokens in an order of their own, and MLA keeps its heads apart.
        self.mixes_versions = all(isinstance(one, targets.LoraProjection) for one in self._layers.values())
        self.shapes = {path: targets.shape(layer) for path, layer in self._layers.items()}
        self.vocabulary = _vocabulary(config)
        self.context = context_of(config)
        self.rounding = 2e-3 if mx.default_device().type == mx.cpu else 0.1
        self._enabled = True
        self._weights = AdapterWeights(rank=rank, alpha=rank, scale=1.0, pairs={})
        self._head = find_head(causal, bends(config))

    @property
    def enabled(self) -> bool:
        """Whether the adapter has its effect."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._enabled = value
        for layer in self._layers.values():
            layer.scale = self._weights.scale if value else 0.0

    def prepare(self, weights: AdapterWeights) -> Prepared:
        """The adapter as MLX arrays, which never change in place."""
        pairs = {
            path: (mx.array(targets.turned(a)), mx.array(targets.turned(b)))
            for path, (a, b) in weights.pairs.items()
        }
        mx.eval(pairs)
        return weights, pairs

    def assign(self, prepared: Prepared) -> None:
        """Put weights in place."""
        self._weights, pairs = prepared
        for path, layer in self._layers.items():
            layer.lora_a, layer.lora_b = pairs[path]
        self.enabled = self._enabled

    def halves(self) -> Iterator[tuple[str, tuple[mx.array, mx.array]]]:
        """A and B of each path, as they stand."""
        for path, layer in self._layers.items():
            yield path, (layer.lora_a, layer.lora_b)

    def extract(self) -> AdapterWeights:
        """The weights in place, as NumPy, in PEFT's orientation."""
        pairs = {
            path: (
                targets.turned(np.array(layer.lora_a, np.float32)),
                targets.turned(np.array(layer.lora_b, np.float32)),
            )
            for path, layer in self._layers.items()
        }
        rank, scale = self._weights.rank, self._weights.scale
        return AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)

    def logprobs(self, packed: Packed, temperature: Sequence[float]) -> mx.array:
        """fp32 log-probs of the targets, `(B, R)`, 0 on padding; the head sees the response only."""
        rows, columns = packed.mask.nonzero()
        heat = mx.array(np.asarray(temperature, np.float32)[rows])
        row, place = mx.array(rows), mx.array(packed.positions[rows, columns])
        target, ids = mx.array(packed.targets[rows, columns]), mx.array(packed.ids)
        if self._head is None:
            chosen = chosen_logprobs(self.causal(ids)[row, place], target, heat)
        else:
            chosen = token_logprobs(self._head, self.causal.model(ids)[row, place], target, heat)
        # Back by gathering: a scatter would cost MLX more.
        at = np.zeros(packed.targets.shape, np.int64)
        at[rows, columns] = np.arange(len(rows))
        return chosen[mx.array(at)] * mx.array(packed.mask)

    def scores(self, packed: Packed, temperature: Sequence[float]) -> Any:
        """As `logprobs`, as NumPy."""
        return np.array(self.logprobs(packed, temperature))

    def states(self, packed: Packed) -> Any:
        """The mean hidden state of each response, `(B, D)`, fp32, as NumPy. Raises TrainingError."""
        if self._head is None:
            raise TrainingError(HIDDEN)
        hidden = self.causal.model(mx.array(packed.ids)).astype(mx.float32)
        return np.array((mx.array(packed.means)[:, None] @ hidden)[:, 0])

    def decoder(self) -> MlxDecoder:
        """A decoding step with a fresh KV cache."""
        return MlxDecoder(self.causal)

    def batching(self, chat: ChatTemplate, by: By) -> MlxBatching:
        """Answers that come and go."""
        return MlxBatching(self, chat, by)


def _fits(module: Any) -> bool:
    """Whether MLX can quantize this projection or stack of experts."""
    return hasattr(module, "to_quantized") and module.weight.shape[-1] % _GROUP == 0


def _vocabulary(config: dict[str, Any]) -> int:
    nested: dict[str, Any] = config.get("text_config") or {}
    return int(config.get("vocab_size") or nested.get("vocab_size") or 1 << 31)
