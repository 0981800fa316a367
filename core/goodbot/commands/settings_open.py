# SPDX-License-Identifier: Apache-2.0
"""Which settings an owner's page changes at once, which with a code from the bot's machine, and which never.

What is not in `OPEN` needs a code: a new setting is none that a browser alone may set until somebody has
thought about it.
"""

from __future__ import annotations

from typing import NamedTuple

from goodbot.api.settings_page import SettingValue
from goodbot.config import Config
from goodbot.config.described import Described

_OPEN = {
    "serving": "ask max_tokens thinking system_prompt notes history history_tokens language stars"
    " buttons messages_per_minute megabytes_per_day ratings_per_day seed",
    "serving.sampling": "temperature top_k top_p min_p repetition_penalty",
    "training": "schedule min_ratings held_out start_small reward idle_seconds quiet_hours on_battery"
    " max_load max_gpu rater_share duplicate_limit age_half_life from_others replay_share anchors on_alarm"
    " outvoted scopes",
    "training.settings": "preset objective",
    "judge": "weight share minutes episodes",
    "adapters": "keep",
    "privacy": "unrated_days",
    "log": "format level",
}
OPEN = frozenset(f"{section}.{name}" for section, names in _OPEN.items() for name in names.split()) | {
    "serving.canary"
}
_LEARNING = "training.settings."
_LEARNING_KINDS = ("switch", "whole", "number")
_NOT_OPEN = frozenset({"training.settings.base_bits"})
"""Numbers of a training that need more than a number: another package."""


class Barrier(NamedTuple):
    """What stands between an owner's page and a setting."""

    why: str
    """The key of a text that says it; empty: nothing."""
    opens: bool
    """Whether a code from the bot's machine opens it."""


def barrier(one: Described, value: SettingValue, config: Config, *, secret: bool) -> Barrier:
    """What stands in the way of a change of this setting, whose value in the file is `value`."""
    section, _, rest = one.key.partition(".")
    if one.key == "model.path":
        return Barrier("set_model", opens=False)
    if section == "encryption":  # the data must change with it
        return Barrier("set_encryption", opens=False)
    if section == "connectors" and rest.partition(".")[0] not in config.connectors:
        return Barrier("set_connect", opens=False)  # it needs a token, and packages
    if isinstance(value, list) and any("\n" in text for text in value):
        return Barrier("set_lines", opens=False)
    if secret:
        return Barrier("set_hidden", opens=True)
    learns = one.key.startswith(_LEARNING) and one.kind in _LEARNING_KINDS and one.key not in _NOT_OPEN
    if one.key in OPEN or learns:
        return Barrier("", opens=False)
    return Barrier("set_closed", opens=True)
