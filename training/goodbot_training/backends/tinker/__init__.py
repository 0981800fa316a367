# SPDX-License-Identifier: Apache-2.0
"""The backend `tinker`: a server that speaks Tinker's protocol takes the steps, all else is torch here.

Importing this imports no framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from goodbot import hookimpl
from goodbot.api.backend import BackendSpec
from goodbot.base.checks import Range

from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import OBJECTIVES, TrainingSettings

_WHOLE = Range(
    least=1, most=1, says="must be 1 with tinker: its server cannot go on from weights that were changed here"
)
_NEVER = Range(
    least=0, most=0, says="must be 0 with tinker: its server cannot go on from weights that were changed here"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TinkerSettings(TrainingSettings):
    """How one round trains there: as here, but for what a server cannot do."""

    strength: Annotated[float, _WHOLE] = 1.0
    """1: the version is what the server has trained."""
    contested_strength: Annotated[float, _WHOLE] = 1.0
    """As `strength`."""
    gate_retry: Annotated[float, _NEVER] = 0.0
    """0: a candidate that is refused is not tried again in a weaker form."""
    attention_rate: Annotated[
        float, Range(least=1, most=1, says="must be 1 with tinker: its server has one rate for all weights")
    ] = 1.0
    """1: the same rate in attention as elsewhere."""
    damping: Annotated[
        float, Range(least=0, most=0, says="must be 0 with tinker: its server tells no gradients beforehand")
    ] = 0.0
    """0: AdamW."""


@hookimpl
def register_backend() -> BackendSpec:
    """Offer `tinker`."""
    return BackendSpec(
        name="tinker",
        factory="goodbot_training.backends.tinker.trainer:TinkerBackend",
        requires=("torch", "transformers", "peft", "safetensors"),
        extra="torch",
        settings=TinkerSettings,
        objectives=OBJECTIVES,
        presets=resolve,
        priority=0,
        remote=True,
    )
