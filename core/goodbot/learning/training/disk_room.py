# SPDX-License-Identifier: Apache-2.0
"""Whether the disk has room for what a training writes: asked before its hours, not after them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from goodbot.api.sentences import Condition, waits
from goodbot.base import full_disk
from goodbot.learning.core import Core
from goodbot.learning.training.settings import shape

_BYTES = 28
"""For each weight of an adapter: its files, and two checkpoints with two moments each, in 32 bits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskRoom:
    """What a training needs of the disk of a state directory."""

    home: Path
    needed: int
    """Bytes, beside those that are kept free for ratings."""

    @classmethod
    def of(cls, core: Core) -> DiskRoom:
        """By the model and the settings in use; where its shape is not known, nothing but the reserve."""
        model = shape(core.model.path)
        weights = model.lora(int(core.settings.get("rank", 8))) if model else 0
        return cls(home=core.config.home, needed=_BYTES * weights)

    def missing(self) -> Condition | None:
        """What a training waits for; None: there is room."""
        megabytes = full_disk.lacking(self.home, self.needed)
        return waits("disk", megabytes=megabytes) if megabytes else None
