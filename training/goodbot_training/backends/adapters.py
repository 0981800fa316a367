"""Adapters on disk, in PEFT's layout, read and written without any ML framework.

`adapter_model.safetensors` holds, per linear projection, `base_model.model.<path>.lora_A.weight`
`(r, in)` and `.lora_B.weight` `(out, r)`; `adapter_config.json` holds r and alpha. The effect is
`y += alpha / r · B A x`. The same weights give the same bytes, and no file names this machine.
"""

# pyright: standard
# (tokenizers and safetensors ship no complete types)

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import safetensors
from goodbot.errors import AdapterError
from safetensors.numpy import save

if TYPE_CHECKING:
    from goodbot.backend import Floats

WEIGHTS_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"
PREFIX = "base_model.model."
_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F64": np.float64}
_UNSUPPORTED = ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save", "layer_replication")


@dataclass(frozen=True, kw_only=True)
class AdapterWeights:
    """One LoRA adapter in host memory, fp32."""

    rank: int
    alpha: float
    scale: float
    """What multiplies B·A: alpha / r, or alpha / √r with rsLoRA."""
    pairs: Mapping[str, tuple[Floats, Floats]]
    """Module path → A `(r, in)`, B `(out, r)`."""

    def finite(self) -> bool:
        """Whether every number is."""
        return all(bool(np.isfinite(part).all()) for pair in self.pairs.values() for part in pair)


def fresh(
    shapes: Mapping[str, tuple[int, int]], *, rank: int, alpha: float, seed: int
) -> AdapterWeights:
    """A new adapter without effect: A uniform in ±1/√in, B zero. `shapes`: path → (out, in).

    Drawn by NumPy per path, so that all backends start from the same numbers.
    """
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for path, (rows, columns) in sorted(shapes.items()):
        random = np.random.default_rng([seed, crc32(path.encode())])
        bound = columns**-0.5
        a = random.uniform(-bound, bound, (rank, columns)).astype(np.float32)
        pairs[path] = (a, np.zeros((rows, rank), np.float32))
    return AdapterWeights(rank=rank, alpha=alpha, scale=alpha / rank, pairs=pairs)


def write_adapter(directory: Path, weights: AdapterWeights, *, base_model: str = "") -> None:
    """Write both files and sync them. `base_model` is a public name, never a path."""
    tensors: dict[str, Any] = {}
    for path, (a, b) in sorted(weights.pairs.items()):
        tensors[f"{PREFIX}{path}.lora_A.weight"] = np.ascontiguousarray(a, np.float32)
        tensors[f"{PREFIX}{path}.lora_B.weight"] = np.ascontiguousarray(b, np.float32)
    config = {
        "base_model_name_or_path": "" if os.path.isabs(base_model) else base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "lora_alpha": weights.alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": weights.rank,
        "target_modules": sorted({path.rsplit(".", 1)[-1] for path in weights.pairs}),
        "task_type": "CAUSAL_LM",
        "use_rslora": False,
    }
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / WEIGHTS_FILE, save(tensors, metadata={"format": "pt"}))
    _write(directory / CONFIG_FILE, json.dumps(config, indent=2, sort_keys=True).encode() + b"\n")


def read_adapter(directory: Path) -> AdapterWeights:
    """Read an adapter. Raises AdapterError for files that are missing, torn, foreign or not
    finite.
    """
    try:
        config = json.loads((directory / CONFIG_FILE).read_bytes())
        stored = safetensors.deserialize((directory / WEIGHTS_FILE).read_bytes())
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise AdapterError(f"The adapter in {directory} cannot be read: {error}") from error
    rank, alpha = _shape(config, directory)
    halves: dict[str, dict[str, Floats]] = {}
    for name, tensor in stored:
        path, kind = _split(name, directory)
        halves.setdefault(path, {})[kind] = _array(tensor, name, directory)
    pairs: dict[str, tuple[Floats, Floats]] = {}
    for path, pair in sorted(halves.items()):
        a, b = pair.get("lora_A"), pair.get("lora_B")
        if a is None or b is None or a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1]:
            raise AdapterError(f"The adapter in {directory} is malformed at {path}.")
        if a.shape[0] != rank:
            raise AdapterError(
                f"The adapter in {directory} has another rank than it says at {path}."
            )
        pairs[path] = (a, b)
    if not pairs:
        raise AdapterError(f"The adapter in {directory} is empty.")
    scale = alpha / (rank**0.5 if config.get("use_rslora") else rank)
    weights = AdapterWeights(rank=rank, alpha=alpha, scale=scale, pairs=pairs)
    if not weights.finite():
        raise AdapterError(f"The adapter in {directory} holds numbers that are not finite.")
    return weights


def fit(
    weights: AdapterWeights, shapes: Mapping[str, tuple[int, int]], directory: Path
) -> AdapterWeights:
    """The adapter on all of a model's projections: zero where it names none.

    Raises AdapterError when it names a projection that the model lacks, or of another shape.
    """
    for path, (a, b) in weights.pairs.items():
        if shapes.get(path) != (b.shape[0], a.shape[1]):
            raise AdapterError(f"The adapter in {directory} is not for this model: see {path}.")
    pairs = dict(weights.pairs)
    for path, (rows, columns) in shapes.items():
        if path not in pairs:
            pairs[path] = (
                np.zeros((weights.rank, columns), np.float32),
                np.zeros((rows, weights.rank), np.float32),
            )
    return AdapterWeights(rank=weights.rank, alpha=weights.alpha, scale=weights.scale, pairs=pairs)


def _shape(config: Any, directory: Path) -> tuple[int, float]:
    if not isinstance(config, dict) or config.get("peft_type", "LORA") != "LORA":
        raise AdapterError(f"The adapter in {directory} is not a LoRA adapter in PEFT's layout.")
    known: dict[str, Any] = config  # pyright: ignore[reportUnknownVariableType]
    for key in _UNSUPPORTED:
        if known.get(key):
            raise AdapterError(f"The adapter in {directory} uses {key}, which is not supported.")
    rank, alpha = known.get("r"), known.get("lora_alpha")
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise AdapterError(f"The adapter in {directory} does not say its rank and alpha.")
    return rank, float(alpha)


def _split(name: str, directory: Path) -> tuple[str, str]:
    for kind in ("lora_A", "lora_B"):
        ending = f".{kind}.weight"
        if name.startswith(PREFIX) and name.endswith(ending):
            return name[len(PREFIX) : -len(ending)], kind
    raise AdapterError(f"The adapter in {directory} holds {name}, which is not a LoRA weight.")


def _array(tensor: Mapping[str, Any], name: str, directory: Path) -> Floats:
    dtype = _DTYPES.get(tensor["dtype"])
    if dtype is None:
        raise AdapterError(f"The adapter in {directory} has a number type of its own at {name}.")
    flat = np.frombuffer(bytes(tensor["data"]), dtype)
    if tensor["dtype"] == "BF16":  # the upper half of an fp32
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(tensor["shape"]).astype(np.float32)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
