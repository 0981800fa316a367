# SPDX-License-Identifier: Apache-2.0
"""How boldly it learns, by name. What a name comes to is the backend's affair: it goes by the model's
shape (`goodbot_training.job.presets`), and values that stand beside it win.
"""

from __future__ import annotations

from collections.abc import Mapping

PRESETS = ("careful", "balanced", "aggressive")
"""What each means is in the catalogue."""
KEYS = ("learning_rate", "learning_rate_scale", "kl")
"""What presets decide; who chooses another one gives up what stands there."""


def preset_of(settings: Mapping[str, object]) -> str:
    """The preset of the config's `[training.settings]`; empty where somebody's own values win over it."""
    if any(key in settings for key in KEYS):
        return ""
    name = settings.get("preset", "balanced")
    return str(name) if name in PRESETS else ""
