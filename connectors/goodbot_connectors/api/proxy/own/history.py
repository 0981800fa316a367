# SPDX-License-Identifier: Apache-2.0
"""A program's own messages of chat completions, as a server of the owner's gets them."""

from __future__ import annotations

from goodbot.api.chat_answers import FIELDS

from goodbot_connectors.api.proxy.dialects.shapes import objects, text_of, told, unthought
from goodbot_connectors.kit.fields import Json, string, sub


def seen(message: Json) -> Json:
    """A message as it is, but for two: where its pictures were left out while it was read, it says that they
    came; and what the model has thought is no part of what it has said."""
    content = message.get("content")
    if message.get("role") == "assistant":
        left = {name: value for name, value in message.items() if name not in FIELDS}
        said = text_of(content)
        kept = unthought(said)
        return {**left, "content": kept} if kept != said or isinstance(content, list) else left
    gone = [part for part in objects(content) if _is_gone(part)]
    return {**message, "content": told(content)} if gone else message


def _is_gone(part: Json) -> bool:
    place = sub(part, string(part, "type"))
    return "data:" in (place.get("url"), place.get("file_data"), part.get("image_url")) or (
        place.get("data") == ""
    )
