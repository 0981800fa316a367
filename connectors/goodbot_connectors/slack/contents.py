# SPDX-License-Identifier: Apache-2.0
"""What a message of Slack's holds: its words, which may stand in blocks alone, and what is attached."""

from __future__ import annotations

from collections.abc import Iterator

from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, as_json, items, string

_FILES = 10
_NAME = 80
_BLOCKS = 50
_DEEP = 5


def text(event: Json) -> str:
    """The words as mrkdwn; without a `text`, those of the blocks, which clients and apps send alone."""
    written = string(event, "text")
    if written.strip():
        return written
    return "\n".join(
        words
        for block in list(items(event, "blocks"))[:_BLOCKS]
        if (words := "".join(_words(block)).strip("\n"))
    )


def _words(part: Json, depth: int = 0) -> Iterator[str]:
    """What one block or element says; people and links as mrkdwn has them."""
    kind = string(part, "type")
    inner = string(part, "text") or string(as_json(part.get("text")), "text")
    if kind == "user":
        yield f"<@{string(part, 'user_id')}>"
    elif kind == "link":
        yield f"<{string(part, 'url')}|{_escaped(inner)}>" if inner else string(part, "url")
    elif kind == "emoji":
        yield f":{string(part, 'name')}:"
    elif kind == "text":
        yield _escaped(inner)
    elif inner:  # a section, a header: mrkdwn or plain words, escaped by whoever wrote them
        yield inner
    for element in items(part, "elements") if depth < _DEEP else ():
        yield from _words(element, depth + 1)
    if kind.startswith("rich_text_"):
        yield "\n"


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attachments(event: Json) -> tuple[str, ...]:
    """The names of what came along; never the contents, nor another's message that was shared."""
    return tuple(_attachments(event))


def _attachments(event: Json) -> Iterator[str]:
    for file in list(items(event, "files"))[:_FILES]:
        if string(file, "mimetype").startswith("image/"):
            yield "image"
        else:
            name = " ".join(clean(string(file, "name")).split())[:_NAME]
            yield f"file {name}" if name else "file"
    if any(one.get("is_share") or one.get("is_msg_unfurl") for one in items(event, "attachments")):
        yield "forwarded message"
