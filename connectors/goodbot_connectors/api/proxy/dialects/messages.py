# SPDX-License-Identifier: Apache-2.0
"""Anthropic's `/v1/messages`: requests made of blocks, and answers streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goodbot.api.events import Message

from goodbot_connectors.api.proxy.dialects import shapes
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, objects, text_of
from goodbot_connectors.api.proxy.dialects.tools import Calls
from goodbot_connectors.kit.fields import as_json, string, sub


def asked(body: Mapping[str, Any]) -> ChatRequest:
    """What a request asks for."""
    tools = [
        shapes.function(string(one, "name"), string(one, "description"), one.get("input_schema"))
        for one in objects(body.get("tools"))
        if string(one, "name") and one.get("type", "custom") == "custom"
    ]
    said = [part for one in objects(body.get("messages")) for part in _messages(one)]
    if system := text_of(body.get("system")):
        said.insert(0, {"role": "system", "content": system})
    form = sub(body, "output_config", "format") or sub(body, "output_format")
    return ChatRequest(
        model=string(body, "model"),
        messages=shapes.together(said),
        tools=() if string(sub(body, "tool_choice"), "type") == "none" else tools,
        thinks=shapes.wants_thought(body),
        stream=body.get("stream") is True,
        max_tokens=shapes.count(body, "max_tokens"),
        temperature=shapes.number(body, "temperature"),
        stops=shapes.stops(body, "stop_sequences"),
        narrowed=shapes.is_narrowed(body),
        filters=shapes.filters(body),
        one_call=sub(body, "tool_choice").get("disable_parallel_tool_use") is True,
        machine=string(form, "type") not in ("", "text"),
    )


def _messages(one: Mapping[str, Any]) -> Iterator[Message]:
    """A message of Anthropic's is several of OpenAI's where tools' results are in it."""
    role, content = string(one, "role"), one.get("content")
    if role == "assistant":
        calls = [
            shapes.called(string(block, "id"), string(block, "name"), _json(block.get("input")))
            for block in objects(content)
            if block.get("type") == "tool_use"
        ]
        yield shapes.assistant(text_of(content), calls)
        return
    results = [block for block in objects(content) if block.get("type") == "tool_result"]
    for block in results:
        yield {
            "role": "tool",
            "content": shapes.told(block.get("content")),
            "tool_call_id": string(block, "tool_use_id"),
        }
    text = shapes.told(content)
    if text or not results:
        yield {"role": "system" if role == "system" else "user", "content": text}


def _json(value: object) -> str:
    return json.dumps(as_json(value), ensure_ascii=False)


class MessageAnswer:
    """Adds up the blocks of an answer; what the model only thought is left out."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls = Calls()
        self._finish = self._model = ""

    def event(self, data: Mapping[str, Any]) -> None:
        """One event of a stream."""
        kind, place = string(data, "type"), data.get("index")
        place = place if isinstance(place, int) else 0
        if kind == "message_start":
            self._model = string(sub(data, "message"), "model")
        elif kind == "message_delta":
            self._finish = string(sub(data, "delta"), "stop_reason") or self._finish
        elif kind == "content_block_start":
            block = sub(data, "content_block")
            self._text.append(string(block, "text"))
            if block.get("type") == "tool_use":
                given = _json(block.get("input")) if block.get("input") else ""
                self._calls.begin(place, string(block, "id"), string(block, "name"), given)
        elif kind == "content_block_delta":
            delta = sub(data, "delta")
            if delta.get("type") == "text_delta":
                self._text.append(string(delta, "text"))
            elif delta.get("type") == "input_json_delta":
                self._calls.add(place, arguments=string(delta, "partial_json"))

    def whole(self, body: Mapping[str, Any]) -> None:
        """One JSON object."""
        self._finish, self._model = string(body, "stop_reason"), string(body, "model")
        for place, block in enumerate(objects(body.get("content"))):
            if block.get("type") == "text":
                self._text.append(string(block, "text"))
            elif block.get("type") == "tool_use":
                self._calls.begin(
                    place, string(block, "id"), string(block, "name"), _json(block.get("input"))
                )

    def said(self) -> ChatResponse:
        """What is known now."""
        return ChatResponse(
            text="".join(self._text), calls=self._calls.all(), finish=self._finish, model=self._model
        )
