"""How boldly it learns, as data: values of `[training.settings]`. What a preset leaves out stays
at its default (see `goodbot_training.settings`).

On the shipped model with 40 ratings (torch, two styles, three seeds each) the liked style gains 30, 46
and 47 points with careful, balanced and aggressive, and the facts lose 0.4, 0.7 and 3.7. Nothing was
measured on large models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One way to learn."""

    name: str
    about: str
    """What it means, in one line."""
    settings: Mapping[str, float] = field(default_factory=dict[str, float])


PRESETS = (
    Preset(
        name="careful",
        about="small steps, close to the original; slower to please you",
        settings={"learning_rate_scale": 0.5, "steps": 16, "kl": 0.2},
    ),
    Preset(name="balanced", about="the defaults; what was measured"),
    Preset(
        name="aggressive",
        about="big steps; may learn faster, and forgets more on the way",
        settings={"learning_rate_scale": 1.5, "steps": 64, "kl": 0.05},
    ),
)
KEYS = {
    "learning_rate_scale": "times the learning rate that fits the model's size",
    "steps": "optimizer steps a round, at most",
    "kl": "how strongly it is held near the original model",
}
"""What presets set, with the comment that the config file gets."""


def preset_of(settings: Mapping[str, object]) -> str:
    """The preset that the config's `[training.settings]` are; empty for somebody's own values."""
    for preset in PRESETS:
        if {key: settings[key] for key in KEYS if key in settings} == dict(preset.settings):
            return preset.name
    return ""
