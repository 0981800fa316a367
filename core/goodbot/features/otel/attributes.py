# SPDX-License-Identifier: Apache-2.0
"""What a span or an event holds of an answer and a rating, in the names of the conventions."""

from __future__ import annotations

import json
from typing import Any

from goodbot.api.events import Message, RatingEvent, RatingKind
from goodbot.api.turns import Turn
from goodbot.base.redact import redact_beginning

_LONGEST = 8000
"""Characters of one text."""
_LABELS = {RatingKind.RETRACT: "taken_back", RatingKind.COMMENT: "words", RatingKind.BETTER: "words"}


def of_turn(turn: Turn) -> dict[str, Any]:
    """The numbers of an answer."""
    model = turn.answered_by or turn.model
    said: dict[str, Any] = {
        "gen_ai.request.model": model,
        "gen_ai.response.id": turn.id,
        "gen_ai.request.temperature": turn.temperature,
        "goodbot.origin": turn.origin,
    }
    if not turn.answered_by:
        said["gen_ai.response.model"] = f"{model} v{turn.version}" if turn.version else model
        said["goodbot.version"] = turn.version
    if turn.filters.top_p < 1:
        said["gen_ai.request.top_p"] = turn.filters.top_p
    if turn.filters.top_k:
        said["gen_ai.request.top_k"] = turn.filters.top_k
    if turn.tokens:
        said["gen_ai.usage.input_tokens"] = len(turn.prompt_tokens) - turn.thought_tokens
        said["gen_ai.usage.output_tokens"] = len(turn.tokens) + turn.thought_tokens
    if turn.thought_tokens:
        said["gen_ai.usage.reasoning.output_tokens"] = turn.thought_tokens
    return said


def words(turn: Turn) -> dict[str, Any]:
    """What was asked and answered, as the conventions write messages. Earlier exchanges are left out."""
    asked = [_message(turn.question)]
    told = [_message({"role": "assistant", "content": turn.response}) | {"finish_reason": "stop"}]
    return {
        "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False),
        "gen_ai.output.messages": json.dumps(told, ensure_ascii=False),
    }


def _message(message: Message) -> dict[str, Any]:
    text = message.get("content")
    part = {"type": "text", "content": masked(text if isinstance(text, str) else "")}
    return {"role": str(message["role"]), "parts": [part]}


def masked(text: str) -> str:
    """The beginning of a text, with no key in it; what is left out is not looked through either."""
    return redact_beginning(text, _LONGEST).encode(errors="replace").decode()


def label(event: RatingEvent) -> str:
    """What a rating says, in a word."""
    if event.value is None:
        return _LABELS.get(event.kind, "words")
    return "good" if event.value > 0 else "bad" if event.value < 0 else "neutral"
