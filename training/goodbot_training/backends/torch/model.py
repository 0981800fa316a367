# SPDX-License-Identifier: Apache-2.0
"""A transformers causal LM with peft LoRA layers on every projection but the head."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# We compile nothing. Where bitsandbytes is installed, peft imports it, and it torch's compiler: a second.
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import numpy as np
import torch
from goodbot.api import model_shape
from goodbot.base.errors import TrainingError
from torch.utils.checkpoint import checkpoint
from transformers import masking_utils
from transformers.modeling_layers import GradientCheckpointingLayer

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.answers import By
from goodbot_training.backends.batching import Batching
from goodbot_training.backends.chat import ChatTemplate, context_of
from goodbot_training.backends.head import HIDDEN, bends
from goodbot_training.backends.layout import lies_in
from goodbot_training.backends.packing import Packed
from goodbot_training.backends.row_adapters import RowAdapters
from goodbot_training.backends.torch import targets
from goodbot_training.backends.torch.loading import load
from goodbot_training.backends.torch.logprobs import Head, find_head, token_logprobs
from goodbot_training.backends.torch.lora import LoraProjection, Prepared, simplify
from goodbot_training.backends.torch.prepacked import give_up, prepacked
from goodbot_training.backends.torch.sampler import TorchDecoder
from goodbot_training.backends.torch.targets import NAME as _NAME

_TINY = 10_000_000
_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h."""
_LARGE = 1 << 20


class TorchModel:
    """The base in fp32 on a CPU and bf16 on CUDA, or in 4 bits; LoRA and log-probs always in fp32."""

    def __init__(self, directory: Path, config: dict[str, Any], rank: int, bits: int | None) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        causal = load(directory, self.device, bits)
        if sum(parameter.numel() for parameter in causal.parameters()) < _TINY:
            # More threads only wait for each other: 2-10 times slower on a busy machine.
            torch.set_num_threads(1)
        self.experts = model_shape.experts(config)
        self._layers: dict[str, Any] = targets.inject(causal, rank, self.experts.count)
        self._causal = causal.eval()
        self.row_adapters = RowAdapters(
            partial(torch.zeros, dtype=causal.dtype, device=self.device),
            partial(torch.as_tensor, device=self.device),
        )
        # Experts see tokens in an order of their own.
        self.mixes_versions = self.experts.count < 2
        for path, layer in self._layers.items():
            simplify(layer, path, self.row_adapters)
        for parameter in self.parameters():
            parameter.data = parameter.data.to(self.device, torch.float32)
        self.attention = targets.attention(causal, self._layers)
        self.shapes = {path: targets.shape(layer) for path, layer in self._layers.items()}
        self.vocabulary = int(causal.get_input_embeddings().weight.shape[0])
        self.context = context_of(config)
        self.rounding = 0.1 if self.device.type == "cuda" else 2e-3
        self._enabled = True
        self._weights = AdapterWeights(rank=rank, alpha=rank, scale=1.0, pairs={})
        self._head = self._find_head(config)

    @property
    def enabled(self) -> bool:
        """Whether the adapter has its effect."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value != self._enabled:
            for layer in self._layers.values():
                layer.enable_adapters(value)
            self._enabled = value

    def parameters(self) -> list[torch.nn.Parameter]:
        """The LoRA weights, in the order of their paths."""
        return [weight for _, layer in sorted(self._layers.items()) for weight in _halves(layer)]

    def halves(self) -> Iterator[tuple[str, tuple[torch.nn.Parameter, torch.nn.Parameter]]]:
        """A and B of each path."""
        for path, layer in sorted(self._layers.items()):
            yield path, _halves(layer)

    def groups(self, attention_rate: float) -> list[dict[str, Any]]:
        """`parameters` for an optimizer, with the `share` of the learning rate that each group gets."""
        shares: dict[float, list[torch.nn.Parameter]] = {}
        for path, layer in sorted(self._layers.items()):
            share = attention_rate if lies_in(path, self.attention) else 1.0
            shares.setdefault(share, []).extend(_halves(layer))
        return [{"params": found, "share": share} for share, found in shares.items()]

    def prepare(self, weights: AdapterWeights) -> Prepared:
        """The adapter as tensors on the model's device."""
        pairs = {path: (self._placed(a), self._placed(b)) for path, (a, b) in weights.pairs.items()}
        return weights, pairs

    def _placed(self, half: Any) -> torch.Tensor:
        """A copy, laid out row by row: a tensor keeps an array's strides, which kernels may refuse."""
        return torch.tensor(np.ascontiguousarray(half), device=self.device)

    @torch.no_grad()
    def assign(self, prepared: Prepared) -> None:
        """Copy weights in; a version of another rank gets parameters of its own size."""
        self._weights, pairs = prepared
        for path, layer in self._layers.items():
            for half, tensor in zip((layer.lora_A, layer.lora_B), pairs[path], strict=True):
                half[_NAME].weight.data = tensor.clone()
            layer.scaling[_NAME] = self._weights.scale

    def extract(self) -> AdapterWeights:
        """The weights in place, as NumPy."""
        pairs = {
            path: (
                layer.lora_A[_NAME].weight.detach().float().cpu().numpy().copy(),
                layer.lora_B[_NAME].weight.detach().float().cpu().numpy().copy(),
            )
            for path, layer in self._layers.items()
        }
        rank, scale = self._weights.rank, self._weights.scale
        return AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)

    def logprobs(self, packed: Packed, temperature: Sequence[float]) -> torch.Tensor:
        """fp32 log-probs of the targets, `(B, R)`, 0 on padding; the head sees the response only."""
        rows, columns = packed.mask.nonzero()
        places = packed.positions[rows, columns]
        heat = np.asarray(temperature, np.float32)[rows]
        ids, row, column, place, target, heat = (
            self.upload(array)
            for array in (packed.ids, rows, columns, places, packed.targets[rows, columns], heat)
        )
        with _one_sequence_a_row():
            if self._head is None:
                logits = self._causal(input_ids=ids, use_cache=False).logits[row, place]
                logits = logits.float() / heat[:, None]
                chosen = logits.gather(1, target[:, None]).squeeze(1) - logits.logsumexp(1)
            else:
                chosen = token_logprobs(self._head, self._hidden(ids)[row, place], target, heat)
        return chosen.new_zeros(packed.targets.shape).index_put((row, column), chosen)

    def upload(self, array: Any) -> torch.Tensor:
        """NumPy → a tensor on the model's device; what a GPU still computes is not waited for."""
        return torch.as_tensor(array).to(self.device, non_blocking=True)

    @torch.no_grad()
    def scores(self, packed: Packed, temperature: Sequence[float]) -> Any:
        """As `logprobs`, without gradient, as NumPy."""
        return self.logprobs(packed, temperature).cpu().numpy()

    @torch.no_grad()
    def states(self, packed: Packed) -> Any:
        """The mean hidden state of each response, `(B, D)`, fp32, as NumPy. Raises TrainingError."""
        if self._head is None:
            raise TrainingError(HIDDEN)
        with _one_sequence_a_row():
            hidden = self._hidden(self.upload(packed.ids)).float()
        return torch.bmm(self.upload(packed.means)[:, None], hidden)[:, 0].cpu().numpy()

    def recompute(self, wanted: bool) -> None:
        """Whether a layer keeps its input only, and computes the rest again for the gradient."""
        if wanted and self.device.type == "cpu":
            _give_back_large()
        for layer in self._causal.modules():
            if isinstance(layer, GradientCheckpointingLayer):
                layer.__dict__.pop("forward", None)
                if wanted:
                    layer.forward = partial(
                        checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False
                    )

    def optimize_for_inference(self) -> None:
        """Lay the frozen matrices out for answers; nothing is trained after that."""
        for layer in self._layers.values():
            if isinstance(layer.forward, LoraProjection):
                layer.forward.prepack()
        if self._head is not None and (product := prepacked(self._head.linear)):
            self._head = replace(self._head, prepacked=product)
            if self._head.linear.weight is not self._causal.get_input_embeddings().weight:
                give_up(self._head.linear)

    def decoder(self) -> TorchDecoder:
        """A decoding step with a fresh KV cache."""
        return TorchDecoder(self._causal, self._head, self.device)

    def batching(self, chat: ChatTemplate, by: By) -> Batching:
        """Answers that come and go."""
        return Batching(self, chat, by, mixes_versions=self.mixes_versions)

    def _hidden(self, ids: torch.Tensor) -> torch.Tensor:
        return self._causal.base_model(input_ids=ids, use_cache=False).last_hidden_state

    @torch.no_grad()
    def _find_head(self, config: dict[str, Any]) -> Head | None:
        if self._causal.base_model is self._causal:
            return None
        ids = torch.arange(4, device=self.device)[None] % self.vocabulary
        whole = self._causal(input_ids=ids, use_cache=False).logits
        return find_head(self._causal, self._hidden(ids)[0], whole[0], bends(config))


_LOOKS = "find_packed_sequence_indices"


@contextmanager
def _one_sequence_a_row() -> Iterator[None]:
    """Spares each pass transformers' look at whether a row holds several sequences: it waits for a GPU."""
    looks = getattr(masking_utils, _LOOKS, None)
    if looks is None:  # another transformers, which looks elsewhere or not at all
        yield
        return
    setattr(masking_utils, _LOOKS, lambda position_ids: None)
    try:
        yield
    finally:
        setattr(masking_utils, _LOOKS, looks)


def _halves(layer: Any) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
    """A and B."""
    return layer.lora_A[_NAME].weight, layer.lora_B[_NAME].weight


def _give_back_large() -> None:
    """Have memory that is freed in pieces of a megabyte or more go back to the system at once.

    glibc learns to keep pieces of up to 32 MiB. Where layers are computed again for the gradient, those lie
    between the ones that live: the process was seen to hold three times of what lived. It costs time in
    models that are so small that their pieces are: their pages are made anew for each.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
