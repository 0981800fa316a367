# SPDX-License-Identifier: Apache-2.0
"""A run's messages, as the plugin sends them, in the shape of OpenAI's API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from goodbot.api.events import Message

from goodbot_connectors.kit.fields import Json, items, string, sub

_ROLES = ("system", "user", "assistant")
_INTERNAL = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
_PREFIX = re.compile(r"\A\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2}[^\]\n]{0,40}\] ")


def messages(given: Iterable[Json]) -> tuple[Message, ...]:
    """The prompt, oldest first. What OpenClaw adds to it for its own use is left out."""
    found = (_message(one) for one in given)
    return tuple(one for one in found if one is not None)


def _message(given: Json) -> Message | None:
    role, content = string(given, "role"), string(given, "content")
    if role == "toolResult":
        return {"role": "tool", "tool_call_id": string(given, "call"), "content": content}
    if role not in _ROLES or _INTERNAL in content[:200]:
        return None
    if role == "assistant" and (calls := [_call(one) for one in items(given, "calls")]):
        return {"role": role, "content": content, "tool_calls": calls}
    if role == "user":
        content = said(content)
    return {"role": role, "content": content}


def _call(given: Json) -> dict[str, Any]:
    arguments = json.dumps(sub(given, "arguments"), ensure_ascii=False)
    function = {"name": string(given, "name"), "arguments": arguments}
    return {"id": string(given, "id"), "type": "function", "function": function}


def said(content: str) -> str:
    """What a person wrote, without the time and the sender that OpenClaw puts before it."""
    stamped = _PREFIX.match(content)
    if stamped is None:
        return content
    rest = content[stamped.end() :]
    if not rest.startswith("Conversation info:"):
        return rest
    _, fence, after = rest.partition("\n```\n")
    return after.lstrip("\n") if fence else rest
