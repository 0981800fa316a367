# SPDX-License-Identifier: Apache-2.0
"""The finished parts of what learns."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.canary import Canary
from goodbot.learning.core import Core
from goodbot.learning.model_switch import ModelSwitch
from goodbot.learning.scopes import Scopes
from goodbot.learning.training.memory_sharing import MemorySharing
from goodbot.learning.training.scheduler import Scheduler
from goodbot.learning.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class LearningParts(Core):
    """A core, and what learns on it."""

    registry: AdapterRegistry
    memory: MemorySharing
    trainer: Trainer
    scheduler: Scheduler
    canary: Canary
    scopes: Scopes
    model_switch: ModelSwitch
