# SPDX-License-Identifier: Apache-2.0
"""`/v1/completions`: a text that goes on, without roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot_connectors.api.proxy.dialects import shapes
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, objects
from goodbot_connectors.kit.fields import string


def asked(body: Mapping[str, Any]) -> ChatRequest:
    """What a request asks for: one text, as if a person had said it."""
    prompts = shapes.stops(body, "prompt")
    return ChatRequest(
        model=string(body, "model"),
        messages=[{"role": "user", "content": prompts[0]}] if prompts else [],
        stream=body.get("stream") is True,
        max_tokens=shapes.count(body, "max_tokens"),
        temperature=shapes.number(body, "temperature"),
        seed=shapes.seed(body),
        stops=shapes.stops(body, "stop"),
        narrowed=shapes.is_narrowed(body),
        filters=shapes.filters(body),
        whole=len(prompts) == 1,
    )


class CompletionAnswer:
    """Adds up the first choice of an answer."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._finish = self._model = ""
        self._several = False

    def event(self, data: Mapping[str, Any]) -> None:
        """One chunk."""
        self._model = string(data, "model") or self._model
        for choice in objects(data.get("choices")):
            if choice.get("index", 0) != 0:
                self._several = True
                continue
            self._text.append(string(choice, "text"))
            self._finish = string(choice, "finish_reason") or self._finish

    def whole(self, body: Mapping[str, Any]) -> None:
        """One JSON object."""
        self.event(body)

    def said(self) -> ChatResponse:
        """What is known now."""
        return ChatResponse(
            text="".join(self._text), finish=self._finish, model=self._model, several=self._several
        )
