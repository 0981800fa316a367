"""A conversation for chat templates that know only users and assistants in turn. Pure.

Other programs' conversations have system prompts, tool calls and results; some templates refuse those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from goodbot.events import Message


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


def _words(message: Message) -> str:
    calls = message.get("tool_calls")
    parts = [str(message.get("content") or "")]
    if isinstance(calls, list):
        parts += [_call(call) for call in cast("list[Any]", calls)]
    if message.get("role") in ("tool", "function"):
        parts.insert(0, "Result:")
    return "\n".join(part for part in parts if part)


def _call(call: Any) -> str:
    known = _mapping(call)
    named = _mapping(known.get("function")) or known
    return f"Call: {named.get('name', '')}({named.get('arguments', '')})"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
