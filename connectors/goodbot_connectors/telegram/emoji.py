# SPDX-License-Identifier: Apache-2.0
"""Which reactions rate, and what two emoji have in common that are one to a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from goodbot.api.labels import reaction_values
from goodbot.base.text import clean

from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_connectors.telegram.fields import Json, string

# Variation selectors and skin tones: 👍🏽 is 👍, ❤️ is ❤.
_VARIANTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")


def values(settings: TelegramSettings) -> dict[str, float]:
    """What each emoji of the settings is worth, from -1 to 1."""
    return reaction_values(settings.good, settings.bad, key)


def key(emoji: str) -> str:
    """An emoji without variation selectors and skin tone, or a custom emoji's id as it is."""
    return _VARIANTS.sub("", clean(emoji))


def keys(given: Iterable[Json]) -> Iterator[str]:
    """Paid reactions are no opinion: they are left out."""
    for reaction in given:
        kind = string(reaction, "type")
        field = {"emoji": "emoji", "custom_emoji": "custom_emoji_id"}.get(kind, "")
        if found := key(string(reaction, field)):
            yield found
