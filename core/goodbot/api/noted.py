# SPDX-License-Identifier: Apache-2.0
"""The line of a prompt that says what people have asked of answers: taken out, and put in. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.events import Message

FRAME = "What readers have asked of your answers: "
"""How it begins; it is a paragraph of its own, the last of the system's.

A stored conversation is what the model read, and so has the line within its system's words: only by this
beginning it is found there again. Whoever ends a system prompt of their own in these words loses that
paragraph while notes are taught.
"""


def joined(system: str, line: str) -> str:
    """What the system says, with the line behind it."""
    return f"{system}\n\n{line}" if system and line else system or line


def with_line(messages: Sequence[Message], line: str) -> list[Message]:
    """The conversation with this line in the place of the one that it has; empty: without any."""
    said = next((str(one["content"]) for one in messages if one["role"] == "system"), None)
    if said is None:
        return [{"role": "system", "content": line}, *messages] if line else [*messages]
    own, _, last = said.rpartition("\n\n")
    system = joined(own if last.startswith(FRAME) else said, line)
    at = next(n for n, one in enumerate(messages) if one["role"] == "system")
    changed: list[Message] = [{**messages[at], "content": system}] if system else []
    return [*messages[:at], *changed, *messages[at + 1 :]]
