# SPDX-License-Identifier: Apache-2.0
"""The tiny model as a server gets it, and adapters of it that answer differently at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import require


def model() -> Path:
    """The tiny model's directory."""
    require("safetensors")
    from goodbot_training.tiny import model_path

    return model_path()


def adapter(directory: Path, seed: int, strength: float = 8.0, *, of: Path | None = None) -> Path:
    """An adapter of random weights in `directory`: no training, and every projection changed."""
    import numpy as np
    from goodbot_training.backends import adapters
    from safetensors import safe_open

    with safe_open(str((of or model()) / "model.safetensors"), "np") as file:
        shapes: dict[str, Any] = {
            name.removesuffix(".weight"): tuple(file.get_slice(name).get_shape())
            for name in file.keys()  # noqa: SIM118  it is no mapping
            if name.endswith("_proj.weight")
        }
    weights = adapters.fresh(shapes, rank=4, alpha=8.0, seed=seed)
    random = np.random.default_rng(seed)
    for path, (_, b) in weights.pairs.items():
        b[:] = random.standard_normal(b.shape) * strength / shapes[path][1] ** 0.5
    adapters.write_adapter(directory, weights, base_model="tiny")
    return directory


def two(root: Path) -> tuple[Path, Path]:
    """Two adapters for `goodbot.testing.ServingContract`."""
    return adapter(root / "one", 1), adapter(root / "two", 2)
