# SPDX-License-Identifier: Apache-2.0
"""What a plugin says of an objective: how the rewards of a round become a loss."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ObjectiveSpec:
    """What the host must know of an objective; only the trainer's process imports it."""

    name: str
    """What `[training.settings] objective` says to choose it."""
    factory: str
    """`package.module:function`: takes the settings of the round (`goodbot_training.api.TrainingSettings`),
    gives a `goodbot_training.api.Objective`."""
    requires: tuple[str, ...] = ()
    """Modules that must be importable, checked without importing them."""
    hindsight: bool = False
    """Whether it takes what people say of an answer beside their ratings (`Objective.hindsight`)."""
    extra: str = ""
    """The extra of the distribution that brings `requires`."""
