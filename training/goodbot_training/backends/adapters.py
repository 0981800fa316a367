# SPDX-License-Identifier: Apache-2.0
"""Adapters on disk, in PEFT's layout, read and written without any ML framework.

`adapter_model.safetensors` holds, per linear projection, `base_model.model.<path>.lora_A.weight`
`(r, in)` and `.lora_B.weight` `(out, r)`; `adapter_config.json` holds r and alpha. The effect is
`y += alpha / r · B A x`. The experts of a layer are stored together: see `layout`. The same weights
give the same bytes, and no file names this machine.
"""

# pyright: standard
# (tokenizers and safetensors ship no complete types)

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import safetensors
from goodbot.api.adapters.manifest import contents
from goodbot.base import durable
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded
from safetensors.numpy import save

from goodbot_training.backends import layout

if TYPE_CHECKING:
    from goodbot.api.step import Floats

WEIGHTS_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"
PREFIX = "base_model.model."
_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64}
_UNSUPPORTED = ("use_dora", "modules_to_save", "layer_replication")
Shape = tuple[int, ...]
"""Of an adapted projection `(out, in)`, of a stack of experts `(experts, out, in)`."""


@dataclass(frozen=True, kw_only=True)
class AdapterWeights:
    """One LoRA adapter in host memory, fp32."""

    rank: int
    """Of the projections; experts may have one of their own."""
    alpha: float
    scale: float
    """What multiplies B·A everywhere: alpha / r, or alpha / √r with rsLoRA."""
    pairs: Mapping[str, tuple[Floats, Floats]]
    """Module path → A `(r, in)`, B `(out, r)`; of experts, in the model's order, parameter path → A
    `(experts, r, in)`, B `(experts, out, r)`."""

    @cached_property
    def width(self) -> int:
        """The largest rank of a projection."""
        return max((a.shape[0] for a, _ in self.pairs.values() if a.ndim == 2), default=0)

    @cached_property
    def numbers_a_rank(self) -> int:
        """In A and B of all projections."""
        return sum(a.shape[1] + b.shape[0] for a, b in self.pairs.values() if a.ndim == 2)

    @cached_property
    def nbytes(self) -> int:
        """Of host memory."""
        return sum(half.nbytes for pair in self.pairs.values() for half in pair)

    def finite(self) -> bool:
        """Whether every number is."""
        return all(bool(np.isfinite(part).all()) for pair in self.pairs.values() for part in pair)


def fresh(
    shapes: Mapping[str, Shape], *, rank: int, alpha: float, seed: int, expert_rank: int = 1
) -> AdapterWeights:
    """A new adapter without effect: A uniform in ±1/√in, B zero.

    Drawn by NumPy per path, so that all backends start from the same numbers.
    """
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for path, (*experts, rows, columns) in shapes.items():
        random = np.random.default_rng([seed, crc32(path.encode())])
        bound = columns**-0.5
        own = expert_rank if experts else rank
        a = random.uniform(-bound, bound, (*experts, own, columns)).astype(np.float32)
        pairs[path] = (a, np.zeros((*experts, rows, own), np.float32))
    return AdapterWeights(rank=rank, alpha=alpha, scale=alpha / rank, pairs=pairs)


def write_adapter(directory: Path, weights: AdapterWeights, *, base_model: str = "") -> None:
    """Write both files and sync them. `base_model` is a public name, never a path."""
    stored = layout.stored_names(path for path, (a, _) in weights.pairs.items() if a.ndim == 3)
    tensors: dict[str, Any] = {}
    for path, pair in sorted(weights.pairs.items()):
        name = PREFIX + stored.get(path, path)
        a, b = layout.flatten(*pair)
        tensors[f"{name}.lora_A.weight"] = np.ascontiguousarray(a, np.float32)
        tensors[f"{name}.lora_B.weight"] = np.ascontiguousarray(b, np.float32)
    config = {
        "base_model_name_or_path": "" if os.path.isabs(base_model) else base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "lora_alpha": weights.alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": weights.rank,
        "task_type": "CAUSAL_LM",
        "use_rslora": False,
        **layout.targets(weights.pairs, weights.rank, weights.scale),
    }
    directory.mkdir(parents=True, exist_ok=True)
    durable.write(directory / WEIGHTS_FILE, save(tensors, metadata={"format": "pt"}))
    durable.write(directory / CONFIG_FILE, json.dumps(config, indent=2, sort_keys=True).encode() + b"\n")


def read_adapter(directory: Path) -> AdapterWeights:
    """Read an adapter. Raises AdapterError for files that are missing, torn, foreign, not finite, or not
    those of the manifest that lies beside them.
    """
    try:
        written, weights_file = contents(directory)
        config = json.loads(written)
        stored = safetensors.deserialize(weights_file)
    except (OSError, RecursionError, ValueError, safetensors.SafetensorError) as error:
        unread = "The adapter in {directory} cannot be read: {why}"
        raise AdapterError(Worded(unread, directory=directory, why=error)) from error
    rank, alpha = _shape(config, directory)
    halves: dict[str, dict[str, Floats]] = {}
    for name, tensor in stored:
        path, kind = _split(name, directory)
        halves.setdefault(path, {})[kind] = _array(tensor, name, directory)
    root = bool(config.get("use_rslora"))
    scale = alpha / (rank**0.5 if root else rank)
    known = layout.Targets(config)
    pairs: dict[str, tuple[Floats, Floats]] = {}
    # Deeper names first: the order of a module's parameters, innermost first.
    for stored_as, pair in sorted(halves.items(), key=lambda item: (-len(item[0]), item[0])):
        parameter = known.parameter(stored_as)
        path = parameter or stored_as
        a, b = pair.get("lora_A"), pair.get("lora_B")
        if a is None or b is None or a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
            odd = "The adapter in {directory} is malformed at {path}."
            raise AdapterError(Worded(odd, directory=directory, path=path))
        own = known.rank(path, rank)
        folded = layout.unflatten(a, b, own) if parameter else (a, b)
        if folded is None or folded[0].shape[-2] != own:
            other = "The adapter in {directory} has another rank than it says at {path}."
            raise AdapterError(Worded(other, directory=directory, path=path))
        a, b = folded
        factor = known.alpha(path, alpha) / (own**0.5 if root else own) / scale
        pairs[path] = (a, b if abs(factor - 1) < 1e-6 else b * np.float32(factor))
    if not pairs:
        raise AdapterError(Worded("The adapter in {directory} is empty.", directory=directory))
    weights = AdapterWeights(rank=rank, alpha=alpha, scale=scale, pairs=pairs)
    if not weights.finite():
        infinite = "The adapter in {directory} holds numbers that are not finite."
        raise AdapterError(Worded(infinite, directory=directory))
    return weights


def fit(weights: AdapterWeights, shapes: Mapping[str, Shape], directory: Path) -> AdapterWeights:
    """The adapter on all of a model's projections: zero where it names none.

    Another framework may call a projection by a slightly other path; then its layer, its name and its
    shape must leave no doubt. Raises AdapterError when the adapter names a projection that the model
    lacks, or of another shape.
    """
    found: dict[str, tuple[Floats, Floats]] = {}
    places: dict[tuple[str, str], list[str]] = {}
    for path in shapes:
        places.setdefault(_place(path), []).append(path)
    for path, (a, b) in weights.pairs.items():
        here = (*a.shape[:-2], b.shape[-2], a.shape[-1])
        same = [path] if path in shapes else places.get(_place(path), [])
        same = [own for own in same if shapes[own] == here and own not in found]
        same = [own for own in same if _inner(own) == _inner(path)] or same
        if len(same) != 1:
            foreign = "The adapter in {directory} is not for this model: see {path}."
            if a.ndim == 3:
                foreign = (
                    "The adapter in {directory} is not for this model: see {path}. If the model is a "
                    "mixture of experts, use the training backend that the adapter was made with."
                )
            raise AdapterError(Worded(foreign, directory=directory, path=path))
        found[same[0]] = (a, b)
    experts = {a.shape[-2] for a, _ in found.values() if a.ndim == 3} or {weights.rank}
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for path, (*stack, rows, columns) in shapes.items():
        rank = min(experts) if stack else weights.rank
        zero = (np.zeros((*stack, rank, columns), np.float32), np.zeros((*stack, rows, rank), np.float32))
        pairs[path] = found.get(path, zero)
    return AdapterWeights(rank=weights.rank, alpha=weights.alpha, scale=weights.scale, pairs=pairs)


def blend(weights: AdapterWeights, parent: AdapterWeights | None, share: float) -> AdapterWeights:
    """The adapter that lies `share` (0 to 1) of the way from its parent to it, number by number.

    `parent` is on the same projections; None for an adapter that was trained from the base, where B is
    zero. Averaging the weights before and after keeps more of what the model knew than of what it was
    taught is lost (Lin et al. 2023, arXiv:2309.06256).
    """
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for path, (a, b) in weights.pairs.items():
        before, ratio = (a, np.zeros_like(b)), 1.0
        if parent is not None:
            before, ratio = parent.pairs[path], parent.scale / weights.scale
        pairs[path] = (
            (before[0] + share * (a - before[0])).astype(np.float32),
            (ratio * before[1] + share * (b - ratio * before[1])).astype(np.float32),
        )
    return replace(weights, pairs=pairs)


def weaken(directory: Path, parent: Path | None, share: float) -> None:
    """Replace the adapter in `directory` by what lies `share` of the way from its parent to it.

    The parent may come from the other framework: its projections are found by `fit`.
    """
    after, before = read_adapter(directory), None
    if parent is not None:
        shapes = {path: (*a.shape[:-2], b.shape[-2], a.shape[-1]) for path, (a, b) in after.pairs.items()}
        before = fit(read_adapter(parent), shapes, parent)
    name = json.loads((directory / CONFIG_FILE).read_bytes())["base_model_name_or_path"]
    write_adapter(directory, blend(after, before, share), base_model=name)


def _inner(path: str) -> str:
    """What follows the number of the layer."""
    parts = path.split(".")
    return ".".join(parts[_number(parts) + 1 :])


def _place(path: str) -> tuple[str, str]:
    """The number of the layer and the last name."""
    parts = path.split(".")
    at = _number(parts)
    return (parts[at] if at >= 0 else "", parts[-1])


def _number(parts: list[str]) -> int:
    """Where the number of the layer stands; -1 for nowhere."""
    return next((at for at, part in enumerate(parts) if part.isdecimal()), -1)


def _shape(config: Any, directory: Path) -> tuple[int, float]:
    if not isinstance(config, dict) or config.get("peft_type", "LORA") != "LORA":
        none = "The adapter in {directory} is not a LoRA adapter in PEFT's layout."
        raise AdapterError(Worded(none, directory=directory))
    known: dict[str, Any] = config  # pyright: ignore[reportUnknownVariableType]
    for key in _UNSUPPORTED:
        if known.get(key):
            odd = "The adapter in {directory} uses {name}, which is not supported."
            raise AdapterError(Worded(odd, directory=directory, name=key))
    rank, alpha = known.get("r"), known.get("lora_alpha")
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        untold = "The adapter in {directory} does not say its rank and alpha."
        raise AdapterError(Worded(untold, directory=directory))
    return rank, float(alpha)


def _split(name: str, directory: Path) -> tuple[str, str]:
    for kind in ("lora_A", "lora_B"):
        ending = f".{kind}.weight"
        if name.startswith(PREFIX) and name.endswith(ending):
            return name[len(PREFIX) : -len(ending)], kind
    odd = "The adapter in {directory} holds {name}, which is not a LoRA weight."
    raise AdapterError(Worded(odd, directory=directory, name=name))


def _array(tensor: Mapping[str, Any], name: str, directory: Path) -> Floats:
    dtype = _DTYPES.get(tensor["dtype"])
    if dtype is None:
        odd = "The adapter in {directory} has a number type of its own at {name}."
        raise AdapterError(Worded(odd, directory=directory, name=name))
    flat = np.frombuffer(bytes(tensor["data"]), dtype)
    if tensor["dtype"] == "BF16":  # the upper half of an fp32
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(tensor["shape"]).astype(np.float32)
