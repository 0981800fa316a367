# SPDX-License-Identifier: Apache-2.0
"""How llama.cpp calls and orders the tensors of a model, by its `model_type`.

Names come from the `gguf` package, which llama.cpp's own converters use. Its `llama` architecture
turns neighbouring numbers of a head where transformers turns halves, so the rows of `q_proj` and
`k_proj` are put in that order (`permute` in its `convert_hf_to_gguf.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.base.errors import AdapterError, MissingExtraError
from goodbot.base.worded import Worded

if TYPE_CHECKING:
    from goodbot.api.step import Floats

_ARCHITECTURES = {
    "llama": "LLAMA",
    "mistral": "LLAMA",
    "smollm3": "SMOLLM3",
    "qwen2": "QWEN2",
    "qwen3": "QWEN3",
    "gemma": "GEMMA",
    "gemma2": "GEMMA2",
    "gemma3_text": "GEMMA3",
    "phi3": "PHI3",
}
_NEIGHBOURS = {"llama", "mistral", "smollm3"}
"""Of which llama.cpp turns neighbours."""
_SUFFIXES = (".weight", ".bias")


def package() -> Any:
    """The `gguf` package. Raises MissingExtraError."""
    try:
        return importlib.import_module("gguf")
    except ImportError as error:
        raise MissingExtraError(Worded("the GGUF format"), "gguf") from error


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The names and the order of one model."""

    arch: str
    """`general.architecture`."""
    neighbours: bool
    heads: int
    kv_heads: int
    names: Any
    """The package's map of names."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Dialect:
        """That of a `config.json`. Raises AdapterError for a family that has none here."""
        kind = str(config.get("model_type"))
        if kind not in _ARCHITECTURES:
            none = "no GGUF is made for models of the type {kind} here; there are: {names}"
            raise AdapterError(Worded(none, kind=repr(kind[:40]), names=", ".join(sorted(_ARCHITECTURES))))
        gguf = package()
        arch = gguf.MODEL_ARCH[_ARCHITECTURES[kind]]
        heads = int(config["num_attention_heads"])
        return cls(
            arch=gguf.MODEL_ARCH_NAMES[arch],
            neighbours=kind in _NEIGHBOURS,
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            names=gguf.get_tensor_name_map(arch, int(config["num_hidden_layers"])),
        )

    def name(self, tensor: str) -> str:
        """What GGUF calls a tensor of the checkpoint. Raises AdapterError."""
        found = self.known(tensor)
        if found is None:
            none = "GGUF has no name for {name} in {kind}: nothing was made"
            raise AdapterError(Worded(none, name=tensor, kind=self.arch))
        return found

    def known(self, tensor: str) -> str | None:
        """As `name`; None for a tensor that this family has not."""
        found = self.names.get_name(tensor, try_suffixes=_SUFFIXES)
        return None if found is None else str(found)

    def ordered(self, tensor: str, rows: Floats) -> Floats:
        """A tensor of the checkpoint, or the B of an adapter on it, in llama.cpp's order of rows."""
        heads = self._turned(tensor)
        if not heads:
            return rows
        halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
        return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))

    def restored(self, tensor: str, rows: Floats) -> Floats:
        """The other way round."""
        heads = self._turned(tensor)
        if not heads:
            return rows
        pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
        return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows.shape))

    def _turned(self, tensor: str) -> int:
        """How many heads the rows of a tensor are, if llama.cpp wants them in its own order; else 0."""
        module = tensor.rpartition(".")[0] if tensor.endswith(_SUFFIXES) else tensor
        if not self.neighbours or not module.endswith((".q_proj", ".k_proj")):
            return 0
        return self.heads if module.endswith(".q_proj") else self.kv_heads
