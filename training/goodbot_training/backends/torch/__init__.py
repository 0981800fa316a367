# SPDX-License-Identifier: Apache-2.0
"""The PyTorch backend: CUDA, and CPU too. Importing this imports no framework."""

from __future__ import annotations

import logging
import platform
import sys

from goodbot import hookimpl
from goodbot.api.backend import BackendSpec

from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import OBJECTIVES, TrainingSettings

# Where bitsandbytes is installed, peft imports it. Without a GPU it then advises to have kernels downloaded.
logging.getLogger("bitsandbytes.backends.cpu").setLevel(logging.ERROR)


@hookimpl
def register_backend() -> BackendSpec:
    """Offer `torch`."""
    return BackendSpec(
        name="torch",
        factory="goodbot_training.backends.torch.trainer:TorchBackend",
        requires=("torch", "transformers", "peft", "safetensors"),
        extra="torch",
        settings=TrainingSettings,
        objectives=OBJECTIVES,
        presets=resolve,
        priority=10,
        # The wheels for Linux on x86-64 bring CUDA along.
        download=2_500_000_000 if (sys.platform, platform.machine()) == ("linux", "x86_64") else 300_000_000,
    )
