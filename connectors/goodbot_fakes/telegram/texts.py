# SPDX-License-Identifier: Apache-2.0
"""Texts and entities as Telegram's server takes them; offsets count UTF-16 code units."""

from __future__ import annotations

import re
from typing import Any

from goodbot.base.text import units

from goodbot_fakes.telegram.errors import Json, bad_request

LIMIT = 4096
"""The longest message (core.telegram.org/bots/api#sendmessage)."""

_MARKS = re.compile(r"(?<![\w/])/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]{3,32})?|(?<!\w)@[A-Za-z0-9_]{3,32}")


def entities_of(text: str) -> list[Json]:
    """The commands and mentions that a server finds in what a person writes."""
    return [
        {
            "type": "bot_command" if match[0].startswith("/") else "mention",
            "offset": units(text[: match.start()]),
            "length": units(match[0]),
        }
        for match in _MARKS.finditer(text)
    ]


def formatted(text: str, entities: list[Any], *, limit: int = LIMIT) -> tuple[str, list[Json]]:
    """What becomes of a text that a bot sends: checked, and without space around it.

    Raises `BotApiError` for an empty or too long text and for entities that do not fit it.
    """
    marked = [_entity(text, entity) for entity in entities]
    left = len(text) - len(text.lstrip())
    before = units(text[:left])
    text = text.strip()
    if not text:
        raise bad_request("message text is empty")
    if units(text) > limit:
        raise bad_request("message is too long")
    kept: list[Json] = []
    for entity in sorted(marked, key=lambda entity: (entity["offset"], -entity["length"])):
        start = max(0, entity["offset"] - before)
        end = min(units(text), entity["offset"] + entity["length"] - before)
        if end > start:
            kept.append(entity | {"offset": start, "length": end - start})
    return text, kept


def cut(text: str, entity: Json) -> str:
    """The words that an entity covers."""
    raw = text.encode("utf-16-le")
    start = 2 * entity["offset"]
    return raw[start : start + 2 * entity["length"]].decode("utf-16-le")


def _entity(text: str, entity: Any) -> Json:
    if not isinstance(entity, dict) or not isinstance(entity.get("type"), str):  # type: ignore[reportUnknownMemberType]
        raise bad_request('can\'t parse entities: field "type" must be of type String')
    found: Json = dict(entity)  # type: ignore[reportUnknownArgumentType]
    offset, length = found.get("offset"), found.get("length")
    if not isinstance(offset, int) or offset < 0:
        raise bad_request(f"Receive an entity with incorrect offset {offset}")
    if not isinstance(length, int) or length < 0:
        raise bad_request(f"Receive an entity with incorrect length {length}")
    starts = _starts(text)
    if offset > starts[-1]:
        raise bad_request(f"Entity begins after the end of the text at UTF-16 offset {offset}")
    if offset + length > starts[-1]:
        raise bad_request(
            f"Entity beginning at UTF-16 offset {offset} ends after the end of the text at "
            f"UTF-16 offset {offset + length}"
        )
    if offset not in starts:
        at = len(text.encode("utf-16-le")[: 2 * offset + 2].decode("utf-16-le").encode())
        raise bad_request(f"Entity begins in a middle of a UTF-16 symbol at byte offset {at}")
    if offset + length not in starts:
        end = 2 * (offset + length) + 2
        at = len(text.encode("utf-16-le")[:end].decode("utf-16-le").encode())
        raise bad_request(
            f"Entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol at "
            f"byte offset {at}"
        )
    return found


def _starts(text: str) -> list[int]:
    """Where each character begins, and where the text ends."""
    found = [0]
    for character in text:
        found.append(found[-1] + units(character))
    return found
