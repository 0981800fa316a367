# SPDX-License-Identifier: Apache-2.0
"""A conversation in plain words, for a template that knows only users and assistants in turn. Pure.

Other programs' conversations have system prompts, tool calls and results; some templates refuse those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from goodbot.api.events import Message

_ATTACHED = ("[Attached, and not visible to you: ", "]")
_IMAGE = "[image]"
"""What captures have in the place of one."""

PROGRAM = ("system", "developer")
"""Roles of the program's own words; the second is OpenAI's newer name."""


def plainer(messages: Sequence[Message]) -> list[Message]:
    """The same words as users and assistants in turn, a user first; calls and results as text."""
    plain: list[Message] = []
    for message in messages:
        role = "assistant" if message.get("role") == "assistant" else "user"
        text = _words(message)
        if plain and plain[-1]["role"] == role:
            plain[-1]["content"] = f"{plain[-1]['content']}\n\n{text}".strip()
        else:
            plain.append({"role": role, "content": text})
    if plain and plain[0]["role"] != "user":
        plain.insert(0, {"role": "user", "content": "(The conversation began before this.)"})
    return plain


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The system's words at the head of the first user's, for a template that refuses or drops them."""
    said = [_words(message) for message in messages if message.get("role") in PROGRAM]
    rest = [message for message in messages if message.get("role") not in PROGRAM]
    at = next((i for i, message in enumerate(rest) if message.get("role") == "user"), None)
    if not said:
        return rest
    if at is None:
        return [{"role": "user", "content": "\n\n".join(said)}, *rest]
    content = rest[at].get("content")
    if isinstance(content, list):  # with pictures among the words
        parts = cast("list[Any]", content)
        content = [{"type": "text", "text": "\n\n".join((*said, ""))}, *parts]
    else:
        content = "\n\n".join(part for part in (*said, _words(rest[at])) if part)
    return [*rest[:at], {**rest[at], "content": content}, *rest[at + 1 :]]


def system_first(messages: Sequence[Message]) -> list[Message]:
    """All that the program says in one message at the beginning, for a template that wants it there."""
    said = [_words(message) for message in messages if message.get("role") in PROGRAM]
    rest = [message for message in messages if message.get("role") not in PROGRAM]
    words = "\n\n".join(part for part in said if part)
    return [{"role": "system", "content": words}, *rest] if words else rest


def in_parts(messages: Sequence[Message]) -> list[Message]:
    """Each content as a list of one part, as templates want it that know pictures, too."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message.get("content"), str)
        else message
        for message in messages
    ]


def _words(message: Message) -> str:
    calls = message.get("tool_calls")
    parts = [_text(message.get("content"))]
    if isinstance(calls, list):
        parts += [_call(call) for call in cast("list[Any]", calls)]
    if message.get("role") in ("tool", "function"):
        parts.insert(0, "Result:")
    return "\n".join(part for part in parts if part)


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = map(_mapping, cast("list[Any]", content))
        return "".join(str(part.get("text") or "") for part in parts)
    return str(content or "")


def _call(call: Any) -> str:
    known = _mapping(call)
    named = _mapping(known.get("function")) or known
    return f"Call: {named.get('name', '')}({named.get('arguments', '')})"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def question(text: str, attachments: Sequence[str]) -> str:
    """A message as the model gets it: of what was attached it is told the names."""
    return text + (f"\n\n{', '.join(attachments).join(_ATTACHED)}" if attachments else "")


def is_wordless(text: str) -> bool:
    """Whether a message has no words but those about what was attached."""
    rest = text.replace(_IMAGE, "").strip()
    begins, ends = _ATTACHED
    return not rest or (rest.startswith(begins) and rest.find(ends) == len(rest) - len(ends))
