# SPDX-License-Identifier: Apache-2.0
"""Names of reactions, as Slack gives them."""

from __future__ import annotations

from goodbot.api.labels import reaction_values

from goodbot_connectors.slack.config import SlackSettings

_ALIASES = {
    "thumbsup": "+1",
    "thumbsdown": "-1",
    "poop": "hankey",
    "shit": "hankey",
    "hooray": "tada",
    "fu": "middle_finger",
    "reversed_hand_with_middle_finger_extended": "middle_finger",
    "serious_face_with_symbols_covering_mouth": "face_with_symbols_on_mouth",
    "face_with_open_mouth_vomiting": "face_vomiting",
    "grinning_face_with_star_eyes": "star-struck",
    "👍": "+1",
    "👎": "-1",
    "❤": "heart",
    "🔥": "fire",
    "👏": "clap",
    "🎉": "tada",
    "🏆": "trophy",
    "💯": "100",
    "👌": "ok_hand",
    "💩": "hankey",
    "😡": "rage",
    "🖕": "middle_finger",
}
"""Other names, and what somebody might put into the config instead of a name."""


def emoji_key(name: str) -> str:
    """The canonical name without colons and skin tone: `:thumbsup::skin-tone-2:` is `+1`."""
    plain = name.strip().strip(":").partition("::")[0].replace("\ufe0f", "")
    return _ALIASES.get(plain, plain)


def values(settings: SlackSettings) -> dict[str, float]:
    """What each emoji of the settings is worth, by its canonical name."""
    return reaction_values(settings.good, settings.bad, emoji_key)
