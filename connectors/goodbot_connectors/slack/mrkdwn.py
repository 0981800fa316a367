# SPDX-License-Identifier: Apache-2.0
"""Slack's mrkdwn, as people's messages arrive in it → plain words for the model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from goodbot.base.text import clean

# No class overlaps its neighbour: linear in the text, which may be 40,000 characters long.
_SPECIAL = re.compile(r"<([^<>\n]{1,3000})>")
_SCHEMES = ("http://", "https://", "mailto:", "tel:")
"""What Slack puts before a link that somebody typed without."""
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageText:
    """What somebody wrote."""

    text: str
    mentioned: bool = False
    """Whether we were mentioned; that mention is not in `text`."""
    first: str = ""
    """The id of the person mentioned before all else, if that is how it begins."""


def read(raw: str, me: str, *, ids: bool = False) -> MessageText:
    """`raw` in plain words. With `ids`, mentioned people become their ids, as commands want them."""
    raw = clean(raw)
    mentioned = False

    def plain(found: re.Match[str]) -> str:
        nonlocal mentioned
        inner, _, label = found[1].partition("|")
        if inner == f"@{me}":
            mentioned = True
            return "\x00"
        if inner[:1] == "@":
            return inner[1:] if ids else f"@{label or inner[1:]}"
        if inner[:1] == "#":
            return f"#{label or inner[1:]}"
        if inner[:1] == "!":
            return label or f"@{inner[1:]}"
        if not label or inner == label:
            return inner
        typed = any(inner == f"{scheme}{label}" for scheme in _SCHEMES)
        return label if typed else f"{label} ({inner})"

    opening = _SPECIAL.match(raw.lstrip())
    first = opening[1][1:].partition("|")[0] if opening and opening[1][0] == "@" else ""
    text = _SPECIAL.sub(plain, raw.replace("\x00", ""))
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    if mentioned:
        before, *rest = text.split("\x00")
        for after in rest:
            before = f"{before.rstrip(' ')} {after.lstrip(' ')}"
        text = before.strip(" ,:\n")
    return MessageText(text=text, mentioned=mentioned, first=first)
