# SPDX-License-Identifier: Apache-2.0
"""Who writes the answers that are rated: the policy that is trained, or one that is not it."""

# pyright: standard
# (safetensors ships no complete types)

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.sampler import Sampled
from goodbot_training.tiny.facts import FactQuestion
from safetensors.numpy import load_file, save_file

from tests.learning.exam import sample


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A model, with an adapter or without; `fixed`: always this one, not the policy."""

    model: Path
    adapter: Path | None = None
    fixed: bool = False

    def write(
        self, backend: TrainingBackend, asked: Sequence[FactQuestion], parent: Path | None, seed: int
    ) -> list[Sampled]:
        """An answer to each question, by this writer on behalf of the policy `parent`."""
        adapter = self.adapter if self.fixed else parent
        if adapter is None and not self.fixed:
            return list(_by_base(type(backend), self.model, tuple(asked), seed))
        backend.load(self.model, lora=LoraSettings(), seed=0)
        sampler = backend.sampler()
        if adapter is not None:
            sampler.load_adapter(1, adapter)
            sampler.activate(1)
        return sample(sampler, asked, seed)


@functools.lru_cache(maxsize=16)
def _by_base(
    kind: type[TrainingBackend], model: Path, asked: tuple[FactQuestion, ...], seed: int
) -> tuple[Sampled, ...]:
    """What the untrained model writes is the same for every arm."""
    backend = kind()
    backend.load(model, lora=LoraSettings(), seed=0)
    return tuple(sample(backend.sampler(), asked, seed))


def quantized(directory: Path, model: Path, bits: int = 4, group: int = 32) -> Path:
    """A copy of a model whose projections went through so many bits and back.

    Round to nearest over groups of 32 with a scale and an offset each, as affine quantizers do.
    """
    directory.mkdir()
    for entry in model.iterdir():
        if entry.is_file() and entry.suffix != ".safetensors":
            shutil.copy(entry, directory)
    tensors = load_file(model / "model.safetensors")
    for name, tensor in tensors.items():
        if name.endswith("_proj.weight"):
            groups = tensor.astype(np.float32).reshape(-1, group)
            low, high = groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)
            step = np.maximum(high - low, 1e-8) / (2**bits - 1)
            back = np.round((groups - low) / step) * step + low
            tensors[name] = back.reshape(tensor.shape).astype(tensor.dtype)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory
