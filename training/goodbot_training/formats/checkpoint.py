# SPDX-License-Identifier: Apache-2.0
"""A model directory's weights, read one tensor at a time, and a safetensors file, written the same way.

So a conversion needs the memory of one matrix, not of the model.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from goodbot.base import durable
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

if TYPE_CHECKING:
    from goodbot.api.step import Floats

INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_TYPES: dict[str, Any] = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_MAX_HEADER = 100_000_000
_MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """Where one tensor lies."""

    file: Path
    dtype: str
    """As safetensors names it."""
    shape: tuple[int, ...]
    start: int
    """Bytes from the beginning of the file."""
    bytes: int


class Checkpoint:
    """The tensors of a model in safetensors, by name. Raises AdapterError for one that is unreadable."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.config = cast("dict[str, Any]", json.loads((directory / "config.json").read_bytes()))
            self.files = _files(directory)
            self.tensors = {name: t for file in self.files for name, t in _header(file).items()}
        except _MALFORMED as error:
            unread = (
                "the base model in {name} cannot be read ({why}): fetch it again with `goodbot model use`"
            )
            raise AdapterError(Worded(unread, name=directory.name, why=str(error))) from error
        if self.config.get("quantization") or self.config.get("quantization_config"):
            quantized = (
                "the base model is stored quantized, and an adapter cannot be put into such weights: "
                "take the base's own, unquantized weights"
            )
            raise AdapterError(Worded(quantized))

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return sum(tensor.bytes for tensor in self.tensors.values())

    @property
    def dtype(self) -> str:
        """The type of most of the numbers."""
        sizes: dict[str, int] = {}
        for tensor in self.tensors.values():
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + math.prod(tensor.shape)
        return max(sizes, key=lambda name: sizes[name])

    def stored(self, name: str) -> Any:
        """A tensor as it is stored, not copied: BF16 as 16-bit integers. Raises AdapterError."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise AdapterError(Worded("the base model has no tensor {name}", name=name))
        if tensor.dtype not in _TYPES:
            odd = "the base model stores {name} as {kind}, not as plain numbers"
            raise AdapterError(Worded(odd, name=name, kind=tensor.dtype))
        kind = np.dtype(_TYPES[tensor.dtype])
        return np.memmap(tensor.file, kind, "r", tensor.start, tensor.shape)

    def read(self, name: str, rows: Any = slice(None)) -> Floats:
        """A tensor, or some of its rows, in fp32."""
        return widened(self.stored(name)[rows])


def widened(stored: Any) -> Floats:
    """Stored numbers in fp32; 16-bit integers are BF16, the upper half of an fp32."""
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(stored, np.float32)


def narrowed(values: Floats, dtype: str) -> Any:
    """fp32 numbers as they are stored, rounded to the nearest, ties to even."""
    if dtype == "BF16":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return np.ascontiguousarray(values.astype(_TYPES[dtype]))


def write(
    path: Path,
    shapes: Mapping[str, tuple[str, tuple[int, ...]]],
    tensor: Callable[[str], Any],
    done: Callable[[int], None],
) -> None:
    """A safetensors file, tensor by tensor, synced. `done` is told the bytes of each.

    `shapes` gives each name its type and shape, `tensor` its numbers as they are stored.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in shapes.items():
        start, end = end, end + math.prod(shape) * np.dtype(_TYPES[dtype]).itemsize
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("xb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in shapes:
            content: Any = np.ascontiguousarray(tensor(name))
            file.write(memoryview(content).cast("B"))
            done(content.nbytes)
        durable.flush(file)


def _files(directory: Path) -> list[Path]:
    if not (directory / INDEX).exists():
        return [directory / _SINGLE]
    index: Any = json.loads((directory / INDEX).read_bytes())
    names = sorted(set(cast("Iterable[str]", index["weight_map"].values())))
    if any(Path(name).name != name or not name.endswith(".safetensors") for name in names):
        raise ValueError("its index names files elsewhere")
    return [directory / name for name in names]


def _header(file: Path) -> dict[str, Tensor]:
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        if length > _MAX_HEADER:
            raise ValueError("its header is too long")
        entries: dict[str, Any] = json.loads(opened.read(length))
    size = file.stat().st_size
    tensors: dict[str, Tensor] = {}
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        tensors[name] = Tensor(
            file=file,
            dtype=str(entry["dtype"]),
            shape=tuple(entry["shape"]),
            bytes=end - start,
            start=8 + length + start,
        )
        if not 0 <= start <= end <= size - 8 - length:
            raise ValueError(f"{name} lies outside of its file")
    return tensors
