# SPDX-License-Identifier: Apache-2.0
"""Which reactions rate, and what two emoji have in common that are one to a person."""

from __future__ import annotations

import re

from goodbot.api.labels import reaction_values
from goodbot.base.text import clean

from goodbot_connectors.discord.config import DiscordSettings
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, string

# Variation selectors and skin tones: 👍🏽 is 👍, ❤️ is ❤.
_VARIANTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_CUSTOM = re.compile(r"<?a?:?(?:[A-Za-z0-9_]{1,32}:)?([0-9]{15,19})>?", re.ASCII)
_LONGEST = 64
_REACTION, _BURST = "reaction:", "!"


def values(settings: DiscordSettings) -> dict[str, float]:
    """What each emoji of the settings is worth, from -1 to 1."""
    return reaction_values(settings.good, settings.bad, key)


def key(emoji: str) -> str:
    """An emoji without variation selectors and skin tone; of a custom one (`<:yay:123…>`) the id."""
    custom = _CUSTOM.fullmatch(emoji.strip())
    return custom[1] if custom else _VARIANTS.sub("", clean(emoji.strip()))


def name(emoji: Json) -> str:
    """What a reaction is called as a source: an id, or the emoji with its skin tone.

    Each skin tone is a reaction of its own, which is taken back by itself.
    """
    return identifier(emoji.get("id")) or clean(string(emoji, "name"))[:_LONGEST]


def source(name: str, *, burst: bool) -> str:
    """What a reaction is called in a rating: a super reaction is taken back without the plain one."""
    return f"{_REACTION}{name}{_BURST if burst else ''}"


def of_source(source: str) -> str:
    """The name of the emoji in what `source` has made."""
    return source.removeprefix(_REACTION).removesuffix(_BURST)


def in_path(emoji: Json) -> str:
    """How the address of a reaction names it: `name:id`, or the emoji; not quoted yet."""
    custom = identifier(emoji.get("id"))
    plain = clean(string(emoji, "name")) or "_"
    return f"{plain}:{custom}" if custom else plain
