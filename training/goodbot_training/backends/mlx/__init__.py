"""The MLX backend: Apple GPUs, and Linux CPUs too. Importing this imports no framework."""

from __future__ import annotations

from goodbot import hookimpl
from goodbot.backend import BackendSpec

from goodbot_training.types import TrainingSettings


@hookimpl
def register_backend() -> BackendSpec:
    """Offer `mlx`."""
    return BackendSpec(
        name="mlx",
        factory="goodbot_training.backends.mlx.trainer:MlxBackend",
        requires=("mlx", "mlx_lm", "transformers", "safetensors"),
        extra="mlx",
        settings=TrainingSettings,
        priority=20,
    )
