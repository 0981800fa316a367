# SPDX-License-Identifier: Apache-2.0
"""An adapter as mlx-lm has it: `adapters.safetensors` and an `adapter_config.json` of its own.

There A is `(in, r)` and B `(r, out)`, the effect `y += scale · x A B`, and one rank holds for all
projections (smaller ones are filled up with zeros). `num_layers` counts from the last layer on.
"""

# pyright: standard
# (safetensors ships no complete types)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from goodbot.base import durable
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded
from safetensors.numpy import save

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import proof
from goodbot_training.formats.checkpoint import Checkpoint, widened

WEIGHTS = "adapters.safetensors"
CONFIG = "adapter_config.json"
_DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MAX_BYTES = 8 << 30


def write(directory: Path, adapter: AdapterWeights, base: Checkpoint) -> dict[str, Any]:
    """Write both files into a new directory; the proof. Raises AdapterError."""
    pairs = proof.plain(adapter, base)
    rank = max(a.shape[0] for a, _ in pairs.values())
    tensors: dict[str, Any] = {}
    for path, (a, b) in sorted(pairs.items()):
        missing = rank - a.shape[0]
        tensors[f"{path}.lora_a"] = np.ascontiguousarray(np.pad(a, ((0, missing), (0, 0))).T)
        tensors[f"{path}.lora_b"] = np.ascontiguousarray(np.pad(b, ((0, 0), (0, missing))).T)
    config = {
        "fine_tune_type": "lora",
        "num_layers": int(_text(base.config)["num_hidden_layers"]),
        "lora_parameters": {
            "rank": rank,
            "scale": adapter.scale,
            "dropout": 0.0,
            "keys": sorted({_within(path) for path in pairs}),
        },
    }
    directory.mkdir(parents=True)
    _put(directory / WEIGHTS, save(tensors, metadata={"format": "mlx"}))
    _put(directory / CONFIG, json.dumps(config, indent=2, sort_keys=True).encode() + b"\n")
    found = read(directory)
    proof.of_numbers(adapter, found).require("the MLX adapter")
    of_logits = proof.of_logits(base, adapter, lambda same: (same, proof.merged(base, found)))
    return (of_logits or proof.of_numbers(adapter, found)).require("the MLX adapter")


def read(directory: Path) -> AdapterWeights:
    """An adapter that mlx-lm trained or that `write` made. Raises AdapterError."""
    name = directory.name
    try:
        config: Any = json.loads((directory / CONFIG).read_bytes())
        if (directory / WEIGHTS).stat().st_size > _MAX_BYTES:
            raise ValueError("it is too large")
        stored = safetensors.deserialize((directory / WEIGHTS).read_bytes())
        if config.get("fine_tune_type", "lora") != "lora":
            raise AdapterError(Worded("{name} is no LoRA adapter: fine_tune_type must be lora", name=name))
        parameters = config["lora_parameters"]
        rank, scale = int(parameters["rank"]), float(parameters["scale"])
        halves: dict[str, dict[str, Any]] = {}
        for key, tensor in stored:
            path, _, half = key.rpartition(".lora_")
            if half not in ("a", "b") or len(tensor["shape"]) != 2:
                odd = "{name} holds {key}, which is no LoRA weight of a projection"
                raise AdapterError(Worded(odd, name=name, key=repr(key[:80])))
            flat = np.frombuffer(bytes(tensor["data"]), _DTYPES[tensor["dtype"]])
            values = widened(flat).reshape(tensor["shape"]).T
            halves.setdefault(path, {})[half] = values
        pairs = {path: (both["a"], both["b"]) for path, both in halves.items()}
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        safetensors.SafetensorError,
    ) as error:
        unread = "{name} is no MLX adapter that can be read ({why})"
        raise AdapterError(Worded(unread, name=name, why=str(error))) from error
    if not pairs or rank < 1 or not 0 < scale < 1e6:
        lacks = "{name} is no MLX adapter: its rank, its scale or its weights are missing"
        raise AdapterError(Worded(lacks, name=name))
    for path, (a, b) in pairs.items():
        if a.shape[0] != rank or b.shape[1] != rank:
            other = "{name} has another rank than it says at {path}"
            raise AdapterError(Worded(other, name=name, path=repr(path[:80])))
    found = AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)
    if not found.finite():
        raise AdapterError(Worded("{name} holds numbers that are not finite", name=name))
    return found


def _within(path: str) -> str:
    """What follows the number of the layer."""
    return path.partition(".layers.")[2].partition(".")[2]


def _text(config: dict[str, Any]) -> dict[str, Any]:
    return config.get("text_config") or config


def _put(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        durable.flush(file)
