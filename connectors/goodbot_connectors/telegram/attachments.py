# SPDX-License-Identifier: Apache-2.0
"""Short names of what came with a message. Its contents are never asked for."""

from __future__ import annotations

import re

from goodbot.base.text import clean

from goodbot_connectors.telegram.fields import Json, string, sub

_NAMES = {
    "photo": "image",
    "sticker": "sticker",
    "animation": "animation",
    "video": "video",
    "video_note": "video message",
    "voice": "voice message",
    "audio": "audio",
    "document": "file",
    "story": "story",
    "paid_media": "paid media",
    "contact": "contact",
    "venue": "place",
    "location": "location",
    "poll": "poll",
    "checklist": "checklist",
    "dice": "dice",
    "game": "game",
}
"""Fields of a Message (core.telegram.org/bots/api#message), and what people call them."""
_ALSO = {"animation": "document", "venue": "location"}
"""Telegram sends the second along with the first, for older programs."""
_NAMED = ("document", "audio", "video")
_LONGEST = 60
# Whatever a file's name could do besides being read: end a line, turn the text around, be a path.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069/\\]+")


def names(message: Json) -> tuple[str, ...]:
    """`image`, `file report.pdf`, …; a message has one at most, beside what is sent along."""
    found = [kind for kind in _NAMES if message.get(kind)]
    doubles = {_ALSO[kind] for kind in found if kind in _ALSO}
    return tuple(_name(kind, sub(message, kind)) for kind in found if kind not in doubles)


def _name(kind: str, media: Json) -> str:
    name = _NAMES[kind]
    file = _UNSAFE.sub(" ", clean(string(media, "file_name"))).strip() if kind in _NAMED else ""
    if len(file) > _LONGEST:
        stem, dot, suffix = file.rpartition(".")
        keep = f"…{dot}{suffix}" if stem and len(suffix) <= 8 else "…"
        file = file[: _LONGEST - len(keep)] + keep
    return f"{name} {file}" if file else name
