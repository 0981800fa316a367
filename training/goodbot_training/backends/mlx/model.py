"""An mlx-lm causal LM with LoRA layers on every linear projection of every layer."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.platform == "linux":
    # With a C++ compiler present, each fused kernel would cost a second of compiling on first use.
    os.environ.setdefault("MLX_DISABLE_COMPILE", "1")

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from goodbot.errors import TrainingError
from mlx.utils import tree_unflatten
from mlx_lm.tuner.lora import LoRALinear
from mlx_lm.utils import load_model

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.mlx.sampler import MlxDecoder
from goodbot_training.backends.packing import Packed

Prepared = tuple[AdapterWeights, dict[str, tuple[mx.array, mx.array]]]


class MlxModel:
    """The base as stored (fp32 on a CPU); LoRA weights and log-probs always in fp32."""

    def __init__(self, directory: Path, config: dict[str, Any], rank: int) -> None:
        try:
            loaded = load_model(directory, trust_remote_code=False)
        except Exception as error:  # MLX raises RuntimeError for damaged weights, and for memory
            if "memory" in str(error) or "alloc" in str(error):
                raise
            raise TrainingError(f"The model in {directory} cannot be loaded by MLX.") from error
        causal: Any = loaded[0]
        if mx.default_device().type == mx.cpu and "quantization" not in config:
            causal.set_dtype(mx.float32)  # half precision has no fast path on a CPU
        causal.freeze()
        causal.eval()
        self.causal = causal
        self._layers: dict[str, Any] = {}
        wrapped: list[tuple[str, Any]] = []
        # Paths are those of the checkpoint, the same that torch sees; the head lies outside.
        inside = {id(module) for layer in causal.layers for _, module in layer.named_modules()}
        linear: Any = (nn.Linear, nn.QuantizedLinear)
        for path, module in causal.named_modules():
            if id(module) in inside and isinstance(module, linear):
                layer = LoRALinear.from_base(module, r=rank, scale=1.0)
                layer.linear.freeze()
                wrapped.append((path, layer))
                self._layers[path] = layer
        causal.update_modules(tree_unflatten(wrapped))
        self.shapes = {path: _shape(layer) for path, layer in self._layers.items()}
        self.vocabulary = _vocabulary(config)
        self.context = int(config.get("max_position_embeddings") or 1 << 20)
        self._enabled = True
        self._weights = AdapterWeights(rank=rank, alpha=rank, scale=1.0, pairs={})
        self._head = _head(causal)

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
            path: (mx.array(np.ascontiguousarray(a.T)), mx.array(np.ascontiguousarray(b.T)))
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

    def extract(self) -> AdapterWeights:
        """The weights in place, as NumPy, in PEFT's orientation."""
        pairs = {
            path: (
                np.ascontiguousarray(np.array(layer.lora_a, np.float32).T),
                np.ascontiguousarray(np.array(layer.lora_b, np.float32).T),
            )
            for path, layer in self._layers.items()
        }
        rank, scale = self._weights.rank, self._weights.scale
        return AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)

    def logprobs(self, packed: Packed, temperature: Sequence[float]) -> mx.array:
        """fp32 log-probs of the targets, `(B, R)`; the head sees only the response."""
        ids, positions = mx.array(packed.ids), mx.array(packed.positions)[..., None]
        if self._head is None:
            logits = mx.take_along_axis(self.causal(ids), positions, axis=1)
        else:
            hidden = mx.take_along_axis(self.causal.model(ids), positions, axis=1)
            logits = self._head(hidden)
        scale = mx.array(np.asarray(temperature, np.float32))[:, None, None]
        logits = logits.astype(mx.float32) / scale
        chosen = mx.take_along_axis(logits, mx.array(packed.targets)[..., None], axis=2)
        return chosen[..., 0] - mx.logsumexp(logits, axis=2)

    def scores(self, packed: Packed, temperature: Sequence[float]) -> Any:
        """As `logprobs`, as NumPy."""
        return np.array(self.logprobs(packed, temperature))

    def decoder(self) -> MlxDecoder:
        """A decoding step with a fresh KV cache."""
        return MlxDecoder(self.causal)


def _shape(layer: LoRALinear) -> tuple[int, int]:
    return layer.lora_b.shape[1], layer.lora_a.shape[0]


def _vocabulary(config: dict[str, Any]) -> int:
    nested: dict[str, Any] = config.get("text_config") or {}
    return int(config.get("vocab_size") or nested.get("vocab_size") or 1 << 31)


def _head(causal: Any) -> Any:
    """What turns hidden states into logits, or None where logits are more than head(hidden).

    Found by structure and believed only if it gives the model's own logits: some families scale or
    cap them in between.
    """
    body: Any = getattr(causal, "model", None)
    candidates = [getattr(causal, "lm_head", None)]
    candidates.append(getattr(getattr(body, "embed_tokens", None), "as_linear", None))
    ids = mx.array([[0, 1, 2, 3]])
    for head in candidates:
        try:
            if head and bool(mx.allclose(head(body(ids)), causal(ids), atol=1e-3, rtol=1e-3)):
                return head
        except (TypeError, ValueError, AttributeError):
            continue
    return None
