# SPDX-License-Identifier: Apache-2.0
"""Reading Telegram's JSON: `goodbot_connectors.kit.fields`, its whole numbers, its way to count text."""

from __future__ import annotations

from goodbot_connectors.kit.fields import Json, as_json, items, string, sub

__all__ = ["Json", "as_json", "cut", "integer", "items", "string", "sub"]


def integer(json: Json, name: str) -> int | None:
    """The whole number in a field; Telegram's have at most 52 significant bits."""
    value = json.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    return None


def cut(text: str, start: int, end: int | None = None) -> str:
    """A piece of `text`; Telegram counts in UTF-16 code units."""
    raw = text.encode("utf-16-le")[2 * start : None if end is None else 2 * end]
    return raw.decode("utf-16-le", "replace")
