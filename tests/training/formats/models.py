# SPDX-License-Identifier: Apache-2.0
"""Tiny models of four families with random weights, and adapters on all of their projections."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from goodbot_training.backends import adapters
from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats.checkpoint import Checkpoint

from tests.training.backends import families
from tests.training.conftest import write_tokenizer

IDS = (5, 300, 17, 42, 42, 7, 199, 3, 250, 11)
LONGER = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
"""llama 3's way to a longer context, which GGUF holds as a tensor."""


def make(name: str, directory: Path) -> Any:
    """Save a model with a tokenizer in `directory`; returns it, as transformers has it."""
    family = families.FAMILIES[name]
    if name == "llama":
        own = {**family.own, "rope_parameters": LONGER, "attention_bias": True}
        family = families.Family(kind="llama", targets=family.targets, own=own)
    model = families.make(family)
    if name == "llama":  # transformers makes biases zero, and a wrong order of zeros is no matter
        import torch

        for parameter in (p for n, p in model.named_parameters() if n.endswith("bias")):
            torch.nn.init.normal_(parameter)
    families.save(model, family, directory)
    config = json.loads((directory / "config.json").read_text())
    if name == "llama":
        config |= {"rope_parameters": LONGER, "rope_scaling": LONGER}  # the latter for mlx-lm
        (directory / "config.json").write_text(json.dumps(config))
    write_tokenizer(directory)
    return model


def adapter(base: Checkpoint, seed: int = 1, rank: int = 4) -> AdapterWeights:
    """Random, and strong enough that nothing hides behind rounding."""
    shapes = {
        name.removesuffix(".weight"): tensor.shape
        for name, tensor in base.tensors.items()
        if ".layers." in name and len(tensor.shape) == 2
    }
    weights = adapters.fresh(shapes, rank=rank, alpha=8.0, seed=seed)
    random = np.random.default_rng(seed)
    for _, b in weights.pairs.values():
        b[:] = random.standard_normal(b.shape) * 0.3
    return weights


def logits(model: Any, weights: AdapterWeights | None = None) -> np.ndarray:
    """What transformers answers to IDS, with the adapter put into its weights."""
    import torch

    parameters = dict(model.named_parameters())
    with torch.no_grad():
        pairs = weights.pairs.items() if weights else ()
        before = {path: parameters[f"{path}.weight"].clone() for path, _ in pairs}
        for path, (a, b) in pairs:
            parameters[f"{path}.weight"] += weights.scale * torch.tensor(b @ a)
        found = model(torch.tensor([IDS])).logits[0].numpy()
        for path, weight in before.items():
            parameters[f"{path}.weight"].copy_(weight)
    return found
