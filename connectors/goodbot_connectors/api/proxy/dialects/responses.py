# SPDX-License-Identifier: Apache-2.0
"""`/v1/responses`: requests made of items, and answers streamed or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goodbot.api.events import Message

from goodbot_connectors.api.proxy.dialects import shapes
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, ToolCall, objects, text_of
from goodbot_connectors.api.proxy.dialects.tools import arguments
from goodbot_connectors.kit.fields import string, sub

_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": ""}
_TEXT_ARGUMENT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def asked(body: Mapping[str, Any]) -> ChatRequest:
    """What a request asks for."""
    tools = [
        shapes.function(
            string(one, "name"),
            string(one, "description"),
            one.get("parameters") if one.get("type") == "function" else _TEXT_ARGUMENT,
        )
        for one in objects(body.get("tools"))
        if one.get("type") in ("function", "custom") and string(one, "name")
    ]
    form = string(sub(body, "text", "format"), "type")
    given = body.get("input")
    said = [{"role": "user", "content": given}] if isinstance(given, str) else list(_messages(given))
    if instructions := string(body, "instructions"):
        said.insert(0, {"role": "system", "content": instructions})
    return ChatRequest(
        model=string(body, "model"),
        messages=shapes.together(_joined(said)),
        tools=() if body.get("tool_choice") == "none" else tools,
        custom=frozenset(
            string(one, "name") for one in objects(body.get("tools")) if one.get("type") == "custom"
        ),
        thinks=shapes.wants_thought(body),
        stream=body.get("stream") is True,
        max_tokens=shapes.count(body, "max_output_tokens"),
        temperature=shapes.number(body, "temperature"),
        narrowed=shapes.is_narrowed(body),
        filters=shapes.filters(body),
        one_call=body.get("parallel_tool_calls") is False,
        machine=form not in ("", "text"),
        whole=not (body.get("previous_response_id") or body.get("conversation")),
    )


def _messages(items: object) -> Iterator[Message]:
    for item in objects(items):
        kind = item.get("type", "message")
        if kind == "message":
            role = string(item, "role")
            role = "system" if role == "developer" else role or "user"
            words = text_of if role == "assistant" else shapes.told
            yield {"role": role, "content": words(item.get("content"))}
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield {
                "role": "tool",
                "content": shapes.told(item.get("output")),
                "tool_call_id": string(item, "call_id"),
            }
        elif (call := _call(item)) is not None:
            yield shapes.assistant("", [shapes.called(call.id, call.name, call.arguments)])


def _joined(messages: list[Message]) -> list[Message]:
    """What the assistant said in one go, words and calls, as one message."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else {}
        if message["role"] == "assistant" == last.get("role") and message.get("tool_calls"):
            if said := last.get("tool_calls"):  # of the words a thought is gone already
                said += message["tool_calls"]
            else:
                found[-1] = shapes.assistant(str(last["content"]), message["tool_calls"])
        else:
            found.append(message)
    return found


def _call(item: Mapping[str, Any]) -> ToolCall | None:
    """A call of a tool that the program runs."""
    kind, id_, name = item.get("type"), string(item, "call_id"), string(item, "name")
    if kind == "function_call" and name:
        return ToolCall(id=id_, name=name, arguments=arguments(item))
    if kind == "custom_tool_call" and name:
        text = json.dumps({"input": string(item, "input")}, ensure_ascii=False)
        return ToolCall(id=id_, name=name, arguments=text)
    return None


class ResponseAnswer:
    """Takes the items of an answer as they are done; a stream's last event may hold them again, or not."""

    def __init__(self) -> None:
        self._items: list[Mapping[str, Any]] = []
        self._finish = self._model = ""

    def event(self, data: Mapping[str, Any]) -> None:
        """One event of a stream."""
        kind = string(data, "type")
        if kind == "response.output_item.done":
            self._items.append(sub(data, "item"))
        elif kind in _ENDS:
            self.whole(sub(data, "response"))
            self._finish = _ENDS[kind]

    def whole(self, body: Mapping[str, Any]) -> None:
        """One JSON object."""
        status = string(body, "status")
        self._finish = status if status in ("completed", "incomplete") else ""
        self._model = string(body, "model") or self._model
        self._items = list(objects(body.get("output"))) or self._items

    def said(self) -> ChatResponse:
        """What is known now."""
        words = [text_of(item.get("content")) for item in self._items if item.get("type") == "message"]
        calls = [call for item in self._items if (call := _call(item)) is not None]
        return ChatResponse(
            text="\n\n".join(words), calls=tuple(calls), finish=self._finish, model=self._model
        )
