# SPDX-License-Identifier: Apache-2.0
"""The tiny chat model that ships with goodbot, and everything that makes and judges it.

0.98M parameters in Qwen3 format, trained on a generated corpus of facts and sums that are answered
in three styles with equal probability. It exists so that the demo, the learning benchmark and the
tests have a real language model to teach without a download.

Importing this package imports no ML framework. ``python -m goodbot_training.tiny`` makes the model
anew and needs the ``torch`` extra.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

TEMPERATURE = 0.8
"""The sampling temperature the model is calibrated, judged and served at."""


def model_path() -> Path:
    """The directory of the shipped model: config, tokenizer and ``model.safetensors``."""
    return Path(str(files(__name__) / "model"))


__all__ = ["TEMPERATURE", "model_path"]
