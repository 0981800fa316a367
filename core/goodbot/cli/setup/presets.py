# SPDX-License-Identifier: Apache-2.0
"""How boldly it learns, by name. What a name comes to is the backend's affair: it goes by the model's
shape (`goodbot_training.job.presets`), and values that stand beside it win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One way to learn."""

    name: str
    about: str
    """What it means, in one line."""


PRESETS = (
    Preset(name="careful", about="small steps, close to the original; slower to please you"),
    Preset(name="balanced", about="the defaults; measured on a tiny model"),
    Preset(name="aggressive", about="big steps; may learn faster, and forgets more on the way"),
)
KEYS = ("learning_rate", "learning_rate_scale", "kl")
"""What presets decide; who chooses another one gives up what stands there."""


def preset_of(settings: Mapping[str, object]) -> str:
    """The preset of the config's `[training.settings]`; empty where somebody's own values win over it."""
    if any(key in settings for key in KEYS):
        return ""
    name = settings.get("preset", "balanced")
    return str(name) if name in {preset.name for preset in PRESETS} else ""
