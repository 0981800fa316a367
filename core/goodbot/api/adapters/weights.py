# SPDX-License-Identifier: Apache-2.0
"""What a file of weights may be: a safetensors header that holds one LoRA adapter and nothing else.

Only the header is parsed here, with the standard library: whether the values are finite and of a sane
size, a child of ours asks that has NumPy (`goodbot_training.process.inspect`).
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from goodbot.api.adapters.files import MAX_WEIGHTS, plain
from goodbot.api.model_shape import sizes_of
from goodbot.base.errors import AdapterError, ConfigError

MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a foreign file as something that it is not can raise."""
MAX_RANK = 4096

_MAX_HEADER = 1_000_000
_MAX_TENSORS = 20_000
_SIZES = {"F32": 4, "F16": 2, "BF16": 2}
_PREFIX = "base_model.model."
_UNSUPPORTED = ("use_dora", "modules_to_save", "layer_replication", "trainable_token_indices")

Shapes = Mapping[str, tuple[int, int]]
"""Tensor's name → its shape."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraPair:
    """A `(rows, inputs)` and B `(outputs, rows)` on one path; of E experts, rows are E times the rank."""

    rows: int
    inputs: int
    outputs: int


def check_weights(path: Path) -> Shapes:
    """Refuse a safetensors file that is not exactly what a LoRA adapter of ours looks like.

    Caps on its size, its header's and the tensor count, float dtypes, two-dimensional `lora_A`/`lora_B`
    tensors, and data that cover the file without a gap or an overlap. Raises AdapterError.
    """
    with plain(path, limit=MAX_WEIGHTS) as file:
        return header(file, path.name)


def header(file: BinaryIO, name: str) -> Shapes:
    """`check_weights` of a file that is open at its beginning."""
    try:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _MAX_HEADER:
            raise AdapterError(f"{name} has a header of {length} bytes, over the limit")
        found = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_once)
        size = os.fstat(file.fileno()).st_size - 8 - length
        if not isinstance(found, dict):
            raise AdapterError(f"{name} is not a safetensors file")
        tensors = cast("dict[str, Any]", found)
        tensors.pop("__metadata__", None)
        return _tensors(name, tensors, size)
    except (*MALFORMED, struct.error) as error:
        raise AdapterError(f"{name} is not a readable safetensors file ({error})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers may disagree on which of two entries of one name counts."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice in its header")
    return dict(pairs)


def _tensors(name: str, tensors: Mapping[str, Any], size: int) -> Shapes:
    if not 0 < len(tensors) <= _MAX_TENSORS:
        raise AdapterError(f"{name} holds {len(tensors)} tensors")
    end = 0
    shapes: dict[str, tuple[int, int]] = {}
    for key, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"][0]):
        shape, (start, stop) = entry["shape"], entry["data_offsets"]
        if ".lora_A." not in key and ".lora_B." not in key:
            raise AdapterError(f"{name} holds a tensor that is no LoRA weight: {key[:80]!r}")
        if len(shape) != 2 or any(type(n) is not int or n < 1 for n in shape):
            raise AdapterError(f"{name}: {key[:80]!r} has no shape of a matrix")
        if type(start) is not int or type(stop) is not int:
            raise AdapterError(f"{name}: the data of {key[:80]!r} lie nowhere")
        if start != end or stop - start != _SIZES[entry["dtype"]] * math.prod(shape):
            raise AdapterError(f"{name}: the data of {key[:80]!r} do not fit its shape")
        shapes[key] = (shape[0], shape[1])
        end = stop
    if end != size:
        raise AdapterError(f"{name} has {size - end} bytes that belong to no tensor")
    return shapes


def pairs(shapes: Shapes, config: Mapping[str, Any]) -> dict[str, LoraPair]:
    """Module path → its matrices, where the tensors are what the config says. Raises AdapterError.

    The rank of each, and that it is among the targets: PEFT leaves out in silence what is not.
    """
    rank = _rank(config)
    halves: dict[str, dict[str, tuple[int, int]]] = {}
    for name, shape in shapes.items():
        for kind in ("lora_A", "lora_B"):
            if name.endswith(f".{kind}.weight"):
                path = name.removesuffix(f".{kind}.weight").removeprefix(_PREFIX)
                halves.setdefault(path, {})[kind] = shape
                break
        else:
            raise AdapterError(f"the adapter holds {name[:80]!r}, which is no LoRA weight")
    found: dict[str, LoraPair] = {}
    for path, half in halves.items():
        a, b = half.get("lora_A"), half.get("lora_B")
        if a is None or b is None or a[0] != b[1]:
            raise AdapterError(f"the adapter's two matrices on {path[:80]!r} do not fit each other")
        parameters = _named(path, config.get("target_parameters"))
        if parameters:  # a stack of experts: a whole number of ranks
            fits = any(a[0] % _own_rank(name, config, rank) == 0 for name in parameters)
        else:
            fits = a[0] == _own_rank(path, config, rank)
        if not fits:
            raise AdapterError(f"the adapter has another rank on {path[:80]!r} than it says: {a[0]}")
        if not parameters and not _named(path, config.get("target_modules")):
            raise AdapterError(f"the adapter does not name {path[:80]!r} among its targets")
        found[path] = LoraPair(rows=a[0], inputs=a[1], outputs=b[0])
    return found


def _rank(config: Mapping[str, Any]) -> int:
    if config.get("peft_type", "LORA") != "LORA":
        raise AdapterError("the adapter's config speaks of something else than LoRA")
    for key in _UNSUPPORTED:
        if config.get(key):
            raise AdapterError(f"the adapter uses {key}, which goodbot does not serve")
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise AdapterError("the adapter's config does not say its rank")
    if type(alpha) not in (int, float) or not 0 < cast("float", alpha) < math.inf:
        raise AdapterError("the adapter's config does not say its alpha")
    return rank


def _own_rank(path: str, config: Mapping[str, Any], rank: int) -> int:
    """As `rank_pattern` has it. A pattern is foreign text: compared as a name, never run."""
    patterns = config.get("rank_pattern")
    known = cast("dict[Any, Any]", patterns) if isinstance(patterns, dict) else {}
    for pattern, own in known.items():
        if type(own) is int and 0 < own <= MAX_RANK and _ends(path, str(pattern).replace("\\", "")):
            return own
    return rank


def _named(path: str, names: Any) -> list[str]:
    """What of a list of targets means this path: the path, or the parameter of it."""
    module = path
    while module.endswith(".base_layer"):
        module = module.removesuffix(".base_layer")
    found: list[str] = []
    for name in cast("list[Any]", names) if isinstance(names, list) else ():
        inside, _, leaf = str(name).rpartition(".")
        if _ends(module, str(name)):
            found.append(module)
        elif _ends(module, inside):
            found.append(f"{module}.{leaf}")
    return found


def _ends(path: str, suffix: str) -> bool:
    return bool(suffix) and (path == suffix or path.endswith(f".{suffix}"))


def require_fit(found: Mapping[str, LoraPair], config: Mapping[str, Any]) -> None:
    """Refuse matrices that the base model of this `config.json` has no place for. Raises AdapterError.

    By layer and shape; by name, the server looks that loads them. Of an architecture that the config
    does not tell enough of, nothing is refused here.
    """
    try:
        sizes = sizes_of(config)
        shapes = [
            {(p.outputs, p.inputs) for p in sizes.projections(layer) if p.adapted}
            for layer in range(sizes.layers)
        ]
    except ConfigError:
        return
    for path, pair in found.items():
        layer = next((int(part) for part in path.split(".") if _is_number(part)), -1)
        if not 0 <= layer < len(shapes):
            raise AdapterError(
                f"the adapter is for another model: this one has {len(shapes)} layers, and no {path[:80]!r}"
            )
        if (pair.outputs, pair.inputs) not in shapes[layer]:
            raise AdapterError(
                f"the adapter is for another model: {path[:80]!r} is {pair.outputs} x {pair.inputs} there, "
                f"and layer {layer} of this one has no such matrix"
            )


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 6
