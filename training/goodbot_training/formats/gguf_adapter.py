# SPDX-License-Identifier: Apache-2.0
"""An adapter as llama.cpp takes it with `--lora`: what its `convert_lora_to_gguf.py` writes.

Metadata: `general.type` is `adapter`, `adapter.type` is `lora`, `adapter.lora.alpha` is PEFT's; the
effect is `alpha / rank · B A`, by the rank of each pair. A tensor is called as the base's with
`.lora_a` `(r, in)` or `.lora_b` `(out, r)` behind it, in fp32.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import proof, reference
from goodbot_training.formats.checkpoint import Checkpoint
from goodbot_training.formats.gguf_names import Dialect, package

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_HALVES = (".lora_a", ".lora_b")


def write(path: Path, adapter: AdapterWeights, base: Checkpoint, name: str) -> dict[str, Any]:
    """Write the file; the proof. `name` is for people. Raises AdapterError."""
    dialect, gguf = Dialect.of(base.config), package()
    pairs = proof.plain(adapter, base)
    writer = gguf.GGUFWriter(None, dialect.arch)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_name(name)
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(adapter.alpha))
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for projection, (a, b) in pairs.items():
        tensor = f"{projection}.weight"
        # llama.cpp scales by alpha over each pair's own rank.
        factor = adapter.scale / (adapter.alpha / a.shape[0])
        b = dialect.ordered(tensor, b if abs(factor - 1) < 1e-6 else b * np.float32(factor))
        for half, values in zip(_HALVES, (a, b), strict=True):
            writer.add_tensor(dialect.name(tensor) + half, np.ascontiguousarray(values))
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read(path, base)
    proof.of_numbers(adapter, found).require("the GGUF adapter")
    of_logits = proof.of_logits(base, adapter, lambda model: as_llama_cpp(model, path, base))
    return (of_logits or proof.of_numbers(adapter, found)).require("the GGUF adapter")


def read(path: Path, base: Checkpoint) -> AdapterWeights:
    """The adapter in a GGUF file, in PEFT's order. Raises AdapterError for one of another base."""
    dialect = Dialect.of(base.config)
    alpha, halves = _stored(path)
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for tensor in base.tensors:
        if not tensor.endswith(".weight") or len(base.tensors[tensor].shape) != 2:
            continue
        a, b = (halves.pop(dialect.name(tensor) + half, None) for half in _HALVES)
        if a is not None and b is not None:
            pairs[tensor.removesuffix(".weight")] = (a, dialect.restored(tensor, b))
    if halves or not pairs:
        raise AdapterError(Worded("{name} is no adapter for this base model", name=path.name))
    rank = max(a.shape[0] for a, _ in pairs.values())
    adapter = AdapterWeights(rank=rank, alpha=alpha, scale=alpha / rank, pairs=pairs)
    for projection, (a, b) in pairs.items():
        if a.shape[0] != rank:
            pairs[projection] = (a, b * np.float32(rank / a.shape[0]))
    return replace(adapter, pairs=pairs)


def _stored(path: Path) -> tuple[float, dict[str, Floats]]:
    """Alpha, and every tensor by its name."""
    reader = package().GGUFReader(path)
    alpha = reader.get_field("adapter.lora.alpha")
    if alpha is None:
        raise AdapterError(Worded("{name} is no LoRA adapter", name=path.name))
    return float(alpha.contents()), {t.name: np.asarray(t.data) for t in reader.tensors}


def as_llama_cpp(
    model: reference.DecoderShape, path: Path, base: Checkpoint
) -> tuple[reference.DecoderShape, reference.Weights]:
    """The base in llama.cpp's order and, on top of it, what the file holds, unchanged."""
    dialect = Dialect.of(base.config)
    alpha, halves = _stored(path)
    plain = proof.merged(base, None)

    def weights(tensor: str) -> Floats | None:
        weight = plain(tensor)
        if weight is None:
            return None
        weight = dialect.ordered(tensor, weight)
        a, b = (halves.get(dialect.name(tensor) + half) for half in _HALVES)
        return weight if a is None or b is None else weight + np.asarray(alpha / len(a) * (b @ a), np.float32)

    return replace(model, neighbours=dialect.neighbours), weights
