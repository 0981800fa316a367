# SPDX-License-Identifier: Apache-2.0
"""The MLX backend: Apple GPUs, and Linux CPUs too. Importing this imports no framework."""

from __future__ import annotations

import platform
import sys

from goodbot import hookimpl
from goodbot.api.backend import BackendSpec

from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import OBJECTIVES, TrainingSettings


@hookimpl
def register_backend() -> BackendSpec:
    """Offer `mlx`."""
    return BackendSpec(
        name="mlx",
        factory="goodbot_training.backends.mlx.trainer:MlxBackend",
        requires=("mlx", "mlx_lm", "transformers", "safetensors"),
        extra="mlx",
        settings=TrainingSettings,
        objectives=OBJECTIVES,
        presets=resolve,
        # Made for Apple's GPUs. On a plain processor it multiplies matrices an order of magnitude
        # slower than torch, and is the choice only where torch is not installed.
        priority=20 if sys.platform == "darwin" else 5,
        download=65_000_000 if _has_wheels() else None,
    )


def _has_wheels() -> bool:
    """Whether MLX is published for this machine: Apple silicon, and Linux with glibc 2.35 or newer."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    name, _, version = " ".join(platform.libc_ver()).partition(" ")
    major, _, minor = version.partition(".")
    return name == "glibc" and minor.isdecimal() and (int(major), int(minor)) >= (2, 35)
