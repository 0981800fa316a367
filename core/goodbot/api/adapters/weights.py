# SPDX-License-Identifier: Apache-2.0
"""What a file of weights may be: a safetensors header that holds one LoRA adapter and nothing else.

Only the header is parsed here, with the standard library: whether the values are finite and of a sane
size, a child of ours asks that has NumPy (`goodbot_training.process.inspect`).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from goodbot.api.adapters.files import MAX_WEIGHTS, sized
from goodbot.api.model_shape import sizes_of
from goodbot.base.errors import AdapterError, ConfigError
from goodbot.base.worded import Worded

MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a foreign file as something that it is not can raise."""
MAX_RANK = 4096

_MAX_HEADER = 1_000_000
MOST = 8 + _MAX_HEADER
"""Bytes of a file of weights before its numbers."""
_MAX_TENSORS = 20_000
_MAX_DEPTH = 64
"""Dots in the name of a tensor."""
_MAX_PARAMETERS = 64
"""That one module may have."""
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
    with sized(path, limit=MAX_WEIGHTS) as (file, size):
        return header(file, path.name, size)


def header(file: BinaryIO, name: str, size: int) -> Shapes:
    """Read what is before the numbers, and check it as `check_weights` does.

    Args:
        file: Open at its beginning; no more than `MOST` bytes are read.
        name: What it is called where it is refused.
        size: How many bytes it has.

    Returns:
        Its tensors, by their names.

    Raises:
        AdapterError: It is not an adapter's, or not whole.
    """
    try:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _MAX_HEADER:
            large = "{name} has a header of {length} bytes, over the limit"
            raise AdapterError(Worded(large, name=name, length=length))
        found = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_once)
        if not isinstance(found, dict):
            raise AdapterError(Worded("{name} is not a safetensors file", name=name))
        tensors = cast("dict[str, Any]", found)
        tensors.pop("__metadata__", None)
        return _tensors(name, tensors, size - 8 - length)
    except (*MALFORMED, struct.error) as error:
        unread = "{name} is not a readable safetensors file ({why})"
        raise AdapterError(Worded(unread, name=name, why=str(error))) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers may disagree on which of two entries of one name counts."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice in its header")
    return dict(pairs)


def _tensors(name: str, tensors: Mapping[str, Any], size: int) -> Shapes:
    if not 0 < len(tensors) <= _MAX_TENSORS:
        raise AdapterError(Worded("{name} holds {number} tensors", name=name, number=len(tensors)))
    end = 0
    shapes: dict[str, tuple[int, int]] = {}
    for key, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"][0]):
        shape, (start, stop) = entry["shape"], entry["data_offsets"]
        shown = repr(key[:80])
        if ".lora_A." not in key and ".lora_B." not in key:
            odd = "{name} holds a tensor that is no LoRA weight: {key}"
            raise AdapterError(Worded(odd, name=name, key=shown))
        if len(shape) != 2 or any(type(n) is not int or n < 1 for n in shape):
            raise AdapterError(Worded("{name}: {key} has no shape of a matrix", name=name, key=shown))
        if type(start) is not int or type(stop) is not int:
            raise AdapterError(Worded("{name}: the data of {key} lie nowhere", name=name, key=shown))
        if start != end or stop - start != _SIZES[entry["dtype"]] * math.prod(shape):
            wide = "{name}: the data of {key} do not fit its shape"
            raise AdapterError(Worded(wide, name=name, key=shown))
        shapes[key] = (shape[0], shape[1])
        end = stop
    if end != size:
        more = "{name} has {size} bytes that belong to no tensor"
        raise AdapterError(Worded(more, name=name, size=size - end))
    return shapes


def pairs(shapes: Shapes, config: Mapping[str, Any]) -> dict[str, LoraPair]:
    """Module path → its matrices, where the tensors are what the config says. Raises AdapterError.

    The rank of each, and that it is among the targets: PEFT leaves out in silence what is not.
    """
    said = _Said(config)
    halves: dict[str, dict[str, tuple[int, int]]] = {}
    for name, shape in shapes.items():
        for kind in ("lora_A", "lora_B"):
            if name.endswith(f".{kind}.weight"):
                path = name.removesuffix(f".{kind}.weight").removeprefix(_PREFIX)
                if path.count(".") > _MAX_DEPTH:
                    deep = "the adapter holds {name}, which lies too deep"
                    raise AdapterError(Worded(deep, name=repr(name[:80])))
                halves.setdefault(path, {})[kind] = shape
                break
        else:
            odd = "the adapter holds {name}, which is no LoRA weight"
            raise AdapterError(Worded(odd, name=repr(name[:80])))
    found: dict[str, LoraPair] = {}
    for path, half in halves.items():
        a, b = half.get("lora_A"), half.get("lora_B")
        if a is None or b is None or a[0] != b[1]:
            apart = "the adapter's two matrices on {path} do not fit each other"
            raise AdapterError(Worded(apart, path=repr(path[:80])))
        parameters = said.parameters(path)
        if parameters:  # a stack of experts: a whole number of ranks
            fits = any(a[0] % said.rank(name) == 0 for name in parameters)
        else:
            fits = a[0] == said.rank(path)
        if not fits:
            other = "the adapter has another rank on {path} than it says: {rank}"
            raise AdapterError(Worded(other, path=repr(path[:80]), rank=a[0]))
        if not parameters and not said.is_target(path):
            unnamed = "the adapter does not name {path} among its targets"
            raise AdapterError(Worded(unnamed, path=repr(path[:80])))
        found[path] = LoraPair(rows=a[0], inputs=a[1], outputs=b[0])
    return found


def _rank(config: Mapping[str, Any]) -> int:
    if config.get("peft_type", "LORA") != "LORA":
        raise AdapterError(Worded("the adapter's config speaks of something else than LoRA"))
    for key in _UNSUPPORTED:
        if config.get(key):
            raise AdapterError(Worded("the adapter uses {name}, which goodbot does not serve", name=key))
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise AdapterError(Worded("the adapter's config does not say its rank"))
    if type(alpha) not in (int, float) or not 0 < cast("float", alpha) < math.inf:
        raise AdapterError(Worded("the adapter's config does not say its alpha"))
    return rank


class _Said:
    """What a config says of each place. Its lists are foreign, and long: each is gone through once."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._rank = _rank(config)
        self._modules = _by_ending(config.get("target_modules"))
        self._parameters = _by_ending(config.get("target_parameters"))
        self._ranks: dict[str, tuple[int, int]] = {}
        """Of `rank_pattern`: which of them it is, and its rank."""
        patterns = config.get("rank_pattern")
        known = cast("dict[Any, Any]", patterns) if isinstance(patterns, dict) else {}
        for number, (pattern, own) in enumerate(known.items()):
            if type(own) is int and 0 < own <= MAX_RANK:
                self._ranks.setdefault(str(pattern).replace("\\", ""), (number, own))

    def rank(self, path: str) -> int:
        """By the first pattern that fits. It is foreign text: compared as a name, never run."""
        found = [self._ranks[ending] for ending in _endings(path) if ending in self._ranks]
        return min(found)[1] if found else self._rank

    def is_target(self, path: str) -> bool:
        """Whether it is in the list of modules."""
        return any(ending in self._modules for ending in _endings(_module(path)))

    def parameters(self, path: str) -> list[str]:
        """What the list of parameters means by this path: it, or parameters of it. Raises AdapterError."""
        module = _module(path)
        leaves = set[str]().union(*(self._parameters.get(ending, ()) for ending in _endings(module)))
        if len(leaves) > _MAX_PARAMETERS:
            many = "the adapter names {number} parameters of {path}"
            raise AdapterError(Worded(many, number=len(leaves), path=repr(path[:80])))
        return [f"{module}.{leaf}" if leaf else module for leaf in leaves]


def _by_ending(names: Any) -> dict[str, set[str]]:
    """How a path may end → which parameters of it a list means; the empty one is all of it."""
    found: dict[str, set[str]] = {}
    for name in map(str, cast("list[Any]", names) if isinstance(names, list) else ()):
        inside, _, leaf = name.rpartition(".")
        for ending, meant in ((name, ""), (inside, leaf)):
            if ending:
                found.setdefault(ending, set()).add(meant)
    return found


def _module(path: str) -> str:
    while path.endswith(".base_layer"):
        path = path.removesuffix(".base_layer")
    return path


def _endings(path: str) -> list[str]:
    """The path, and what of it is behind each dot."""
    parts = path.split(".")
    return [".".join(parts[number:]) for number in range(len(parts))]


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
            none = "the adapter is for another model: this one has {layers} layers, and no {path}"
            raise AdapterError(Worded(none, layers=len(shapes), path=repr(path[:80])))
        if (pair.outputs, pair.inputs) not in shapes[layer]:
            none = (
                "the adapter is for another model: {path} is {size} there, "
                "and layer {layer} of this one has no such matrix"
            )
            size = f"{pair.outputs} x {pair.inputs}"
            raise AdapterError(Worded(none, path=repr(path[:80]), size=size, layer=layer))


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 6
