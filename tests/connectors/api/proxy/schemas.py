# SPDX-License-Identifier: Apache-2.0
"""The published schemas of both APIs, as the types of their official Python clients have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anthropic.types import Message, RawMessageStreamEvent
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

_WHOLE: Mapping[str, TypeAdapter[Any]] = {
    "/v1/chat/completions": TypeAdapter(ChatCompletion),
    "/v1/responses": TypeAdapter(Response),
    "/v1/messages": TypeAdapter(Message),
    "/v1/completions": TypeAdapter(Completion),
}
_EVENTS: Mapping[str, TypeAdapter[Any]] = {
    "/v1/chat/completions": TypeAdapter(ChatCompletionChunk),
    "/v1/responses": TypeAdapter(ResponseStreamEvent),
    "/v1/messages": TypeAdapter(RawMessageStreamEvent),
    "/v1/completions": TypeAdapter(Completion),
}


def whole(path: str, body: bytes) -> Any:
    """An answer that is not streamed; a ValidationError if it is none of that API's."""
    return _WHOLE[path].validate_python(json.loads(body))


def events(path: str, body: bytes) -> list[Any]:
    """The events of a stream; a ValidationError for one that is none of that API's."""
    found: list[Any] = []
    for event in body.decode().split("\n\n"):
        lines = [line for line in event.split("\n") if line]
        data = "".join(line[5:].strip() for line in lines if line.startswith("data:"))
        if not data or data == "[DONE]":
            continue
        value = json.loads(data)
        if value.get("type") == "ping":  # which the client drops before it looks
            continue
        for choice in value.get("choices", []) if value.get("object") == "text_completion" else []:
            choice["finish_reason"] = choice["finish_reason"] or "stop"  # null in real streams, too
        named = [line[6:].strip() for line in lines if line.startswith("event:")]
        assert named in ([], [value.get("type")]), named
        found.append(_EVENTS[path].validate_python(value))
    return found
