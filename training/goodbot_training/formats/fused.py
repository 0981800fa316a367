# SPDX-License-Identifier: Apache-2.0
"""A whole model directory with the adapter in its weights, for programs that take no adapters.

The base's files keep their names and, unless fp32 is asked for, their number types; configuration,
tokenizer and licence are copied.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import checkpoint, proof
from goodbot_training.formats.checkpoint import INDEX, Checkpoint

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_COPIED = (".json", ".jinja", ".model", ".txt")
_LEGAL = ("LICENSE", "LICENCE", "NOTICE", "USE_POLICY")


def write(
    directory: Path, base: Checkpoint, adapter: AdapterWeights, *, dtype: str, done: Callable[[int], None]
) -> dict[str, Any]:
    """Write the directory; the proof. `dtype` is `F32`, or empty for the base's own.

    `done` is told the bytes of each tensor. Raises AdapterError.
    """
    pairs = proof.plain(adapter, base)
    directory.mkdir(parents=True)
    for file in base.files:
        shapes = {
            name: (dtype if dtype and tensor.dtype in ("F16", "BF16") else tensor.dtype, tensor.shape)
            for name, tensor in base.tensors.items()
            if tensor.file == file
        }

        def tensor(name: str, shapes: Any = shapes) -> Any:
            pair = pairs.get(name.removesuffix(".weight"))
            if pair is None and shapes[name][0] == base.tensors[name].dtype:
                return base.stored(name)
            weight = base.read(name)
            added = weight if pair is None else weight + proof.delta(adapter, pair)
            return checkpoint.narrowed(added, shapes[name][0])

        checkpoint.write(directory / file.name, shapes, tensor, done)
    _copy(base, directory, dtype)
    made = Checkpoint(directory)
    rounded = base.dtype if not dtype and base.dtype in proof.ROUNDED else ""

    def rounds(name: str, values: Floats) -> Floats:
        return checkpoint.widened(checkpoint.narrowed(values, made.tensors[name].dtype))

    found = proof.of_logits(
        base, adapter, lambda model: (model, proof.merged(made, None)), rounds if rounded else None
    )
    return (found or _numbers(base, adapter, made, rounded)).require("the fused model")


def _copy(base: Checkpoint, directory: Path, dtype: str) -> None:
    for entry in sorted(base.directory.iterdir()):
        known = entry.suffix in _COPIED or entry.stem.upper() in _LEGAL
        if known and entry.is_file() and entry.name != INDEX:
            shutil.copyfile(entry, directory / entry.name)
    if dtype:
        names = {"F32": "float32"}
        config = {**base.config, "dtype": names[dtype]}
        config.pop("torch_dtype", None)
        (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if (base.directory / INDEX).exists():
        index = json.loads((base.directory / INDEX).read_bytes())
        sizes = [np.prod(t.shape) * (4 if dtype else _width(t.dtype)) for t in base.tensors.values()]
        index["metadata"] = {**(index.get("metadata") or {}), "total_size": int(sum(sizes))}
        (directory / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _numbers(
    base: Checkpoint, adapter: AdapterWeights, made: Checkpoint, rounded: str
) -> proof.ConversionCheck:
    """Every weight of the new directory against the one that should be there."""
    expected, found = proof.merged(base, adapter), proof.merged(made, None)
    apart = 0.0
    for name in base.tensors:
        one, two = expected(name), found(name)
        if one is None or two is None or one.shape != two.shape:
            return proof.ConversionCheck(compared="numbers", apart=float("inf"), allowed=0.0)
        apart = max(apart, float(np.sqrt(np.mean((one - two) ** 2)) / (one.std() + 1e-9)))
    allowed = proof.ROUNDED[rounded] if rounded else 1e-6
    return proof.ConversionCheck(compared="numbers", apart=apart, allowed=allowed, rounded=True)


def _width(dtype: str) -> int:
    return 4 if dtype == "F32" else 2
