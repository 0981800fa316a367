# SPDX-License-Identifier: Apache-2.0
"""An optimizer's state on disk: one safetensors file of named arrays, synced, and nothing else."""

# pyright: standard
# (safetensors ships no complete types)

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
from goodbot.base import durable
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded
from safetensors.numpy import load, save

FILE = "trainer.safetensors"


def write_state(directory: Path, arrays: Mapping[str, Any]) -> None:
    """Write NumPy arrays by name into `directory`, which is there."""
    durable.write(directory / FILE, save(dict(arrays)))


def read_state(directory: Path) -> dict[str, Any]:
    """The arrays by name. Raises TrainingError(kind="data") for a file that is missing or torn."""
    try:
        return load((directory / FILE).read_bytes())
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise damaged(directory) from error


def damaged(directory: Path) -> TrainingError:
    """What to raise for a checkpoint that does not fit."""
    return TrainingError(
        Worded("The checkpoint in {directory} cannot be read.", directory=directory), kind="data"
    )
