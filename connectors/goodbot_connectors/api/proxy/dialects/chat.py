# SPDX-License-Identifier: Apache-2.0
"""`/v1/chat/completions`: requests, and answers streamed or whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from goodbot.api.chat_answers import ids
from goodbot.api.chat_answers import number as finite
from goodbot.api.events import Message

from goodbot_connectors.api.proxy.dialects import shapes, tools
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, objects, text_of
from goodbot_connectors.api.proxy.dialects.tools import Calls, Part
from goodbot_connectors.kit.fields import as_json, string, sub

_ROLES = {"developer": "system", "function": "tool"}


def asked(body: Mapping[str, Any]) -> ChatRequest:
    """What a request asks for."""
    form = string(sub(body, "response_format"), "type")
    declared = [
        shapes.function(string(one, "name"), string(one, "description"), one.get("parameters"))
        for one in (*_functions(body), *objects(body.get("functions")))
        if string(one, "name")
    ]
    several = body.get("n") not in (None, 1)
    return ChatRequest(
        model=string(body, "model"),
        messages=shapes.together([_message(one) for one in objects(body.get("messages"))]),
        tools=() if body.get("tool_choice") == "none" else declared,
        thinks=shapes.wants_thought(body),
        stream=body.get("stream") is True,
        max_tokens=shapes.count(body, "max_completion_tokens", "max_tokens"),
        temperature=shapes.number(body, "temperature"),
        seed=shapes.seed(body),
        stops=shapes.stops(body, "stop"),
        narrowed=several or shapes.is_narrowed(body),
        filters=shapes.filters(body),
        one_call=body.get("parallel_tool_calls") is False,
        machine=form not in ("", "text"),
    )


def _functions(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [sub(one, "function") for one in objects(body.get("tools"))]


def _message(one: Mapping[str, Any]) -> Message:
    role = string(one, "role")
    role = _ROLES.get(role, role)
    text = text_of(one.get("content")) or string(one, "refusal")
    if role != "assistant":
        text = shapes.told(one.get("content")) or text
    else:
        calls = [
            shapes.called(string(call, "id"), string(what, "name"), tools.arguments(what))
            for call in objects(one.get("tool_calls"))
            if string(what := sub(call, "function"), "name")
        ]
        if string(old := sub(one, "function_call"), "name"):
            calls.append(shapes.called("", string(old, "name"), tools.arguments(old)))
        return shapes.assistant(text, calls)
    if role == "tool":
        named = {"tool_call_id": id_} if (id_ := string(one, "tool_call_id")) else {}
        return {"role": "tool", "content": text, **named}
    return {"role": role or "user", "content": text}


class ChatAnswer:
    """Adds up the first choice of an answer, and the token ids that servers of ours add to it."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self.calls = Calls()
        self.parts: list[Part] = []
        """What the last chunk said of calls."""
        self._finish = self._model = ""
        self._several = False
        self._prompt: tuple[int, ...] = ()
        self._tokens: list[int] = []
        self._logprobs: list[float] = []

    def event(self, data: Mapping[str, Any]) -> None:
        """One chunk."""
        self._take(data, "delta")

    def whole(self, body: Mapping[str, Any]) -> None:
        """One JSON object."""
        self._take(body, "message")

    def _take(self, body: Mapping[str, Any], part: str) -> None:
        self._model = string(body, "model") or self._model
        self.parts = []
        if "prompt_token_ids" in body:
            self._prompt = self._prompt or ids(body["prompt_token_ids"])
        if extension := sub(body, "sglext"):
            self._prompt = self._prompt or ids(extension.get("input_ids"))
            written = extension.get("output_ids")
            if isinstance(written, list):
                self._tokens += ids(next(iter(written), None))  # pyright: ignore[reportUnknownArgumentType]
        for choice in objects(body.get("choices")):
            if choice.get("index", 0) != 0:
                self._several = True
                continue
            self._choice(choice, as_json(choice.get(part)), whole=part == "message")

    def _choice(self, choice: Mapping[str, Any], said: Mapping[str, Any], *, whole: bool) -> None:
        self._finish = string(choice, "finish_reason") or self._finish
        if "token_ids" in choice or "prompt_token_ids" in choice:
            self._prompt = self._prompt or ids(choice.get("prompt_token_ids"))
            self._tokens += ids(choice.get("token_ids"))
        for told in objects(sub(choice, "logprobs").get("content")):
            self._logprobs.append(finite(told.get("logprob")))
        self._text.append(text_of(said.get("content")) or string(said, "refusal"))
        read = tools.told if whole else tools.streamed
        self.parts += read(self.calls, said)

    def said(self) -> ChatResponse:
        """What is known now."""
        told = self._prompt and len(self._tokens) == len(self._logprobs)
        told = told and all(map(math.isfinite, self._logprobs))
        return ChatResponse(
            text="".join(self._text),
            calls=self.calls.all(),
            finish=self._finish,
            model=self._model,
            several=self._several,
            prompt_tokens=self._prompt if told else (),
            tokens=tuple(self._tokens) if told else (),
            logprobs=tuple(self._logprobs) if told else (),
        )
