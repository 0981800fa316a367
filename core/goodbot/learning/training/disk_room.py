# SPDX-License-Identifier: Apache-2.0
"""Whether the disk has room for what a training writes: asked before its hours, not after them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from goodbot.access.limits import RESERVE
from goodbot.api.sentences import Condition, waits
from goodbot.learning.core import Core
from goodbot.learning.training.settings import shape

_BYTES = 28
"""For each weight of an adapter: its files, and two checkpoints with two moments each, in 32 bits."""
_MEGABYTE = 1_000_000


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
        wanted = RESERVE + self.needed
        try:
            enough = _free(self.home) >= wanted
        except OSError:
            return None  # the store says what is wrong with the disk
        return None if enough else waits("disk", megabytes=-(-wanted // _MEGABYTE))


def _free(home: Path) -> int:
    return shutil.disk_usage(home).free
