# SPDX-License-Identifier: Apache-2.0
"""An answer of our model's server in the API that the program speaks itself.

It goes through as it comes, but for what we asked for and the program did not: token ids and log-probs.
What the model thought is told apart from what it says, and goes to who asks for it. And the model has the
name that the program gave it, not the one that its version has on the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot.api.chat_answers import BROKEN_OFF, is_failure
from goodbot.api.marks import whole
from goodbot.base.errors import ServerError
from goodbot.base.sse import EventStream

from goodbot_connectors.api.proxy.dialects.chat import ChatAnswer
from goodbot_connectors.api.proxy.dialects.shapes import ChatResponse, ResponseReader, objects
from goodbot_connectors.api.proxy.dialects.tools import Part
from goodbot_connectors.api.proxy.own.apart import ThoughtEditor
from goodbot_connectors.api.proxy.own.deltas import ResponseHead
from goodbot_connectors.kit.fields import sub

_TOP = ("prompt_token_ids", "sglext", "prompt_logprobs", "kv_transfer_params")
_CHOICE = ("token_ids", "prompt_token_ids", "prompt_logprobs")


class ResponseEditor:
    """Edits one answer, and lets `answer` read it as it came."""

    def __init__(
        self,
        answer: ResponseReader,
        about: ResponseHead,
        *,
        mend: bool = False,
        thoughts: ThoughtEditor | None = None,
    ) -> None:
        """`mend`: marks in the request were broken (`goodbot.api.marks`); `thoughts`: None where the API has
        no place for any."""
        self._mend, self._thoughts = mend, thoughts
        self._answer, self._model = answer, about.model
        self._keeps_logprobs = bool(about.body.get("logprobs"))
        self._events = EventStream()
        self.over = False
        """The end of a stream has gone by."""
        self.failed = False
        """The server has said in the stream that it has failed."""

    def said(self) -> ChatResponse:
        """What is known now; without a `finish` it is no answer."""
        said = self._answer.said()
        if self.failed:
            said = replace(said, finish="")
        return self._thoughts.said(said) if self._thoughts else said

    def feed(self, piece: bytes) -> bytes:
        """What of a stream goes out. Raises ServerError for what is none."""
        return b"".join(self._event(data) for data in self._events.feed(piece))

    def end(self) -> bytes:
        """What the end of a stream completes. Raises ServerError for one that broke off."""
        rest = b"".join(self._event(data) for data in self._events.end())
        if not (self.over or self.failed or self._answer.said().finish):
            raise _broken()
        return rest

    def whole(self, data: bytes) -> bytes:
        """An answer at once. Raises ServerError for what is none."""
        body = self._read(data)
        if is_failure(body):
            raise _broken()
        self._answer.whole(body)
        edited = self._edited(body, "message")
        self._ended()
        return json.dumps(edited, ensure_ascii=False).encode("utf-8", "replace")

    def _event(self, data: str) -> bytes:
        if data.strip() == "[DONE]":
            self._ended()
            self.over = True
            return b"data: [DONE]\n\n"
        body = self._read(data)
        if is_failure(body):
            if not body.get("error"):  # no client knows it for one
                raise _broken()
            self.failed = True
        self._answer.event(body)
        text = json.dumps(self._edited(body, "delta"), ensure_ascii=False)
        return f"data: {text}\n\n".encode("utf-8", "replace")

    def _ended(self) -> None:
        """Raises ServerError where nothing but a thought came, and no reason why it ended."""
        said = self.said()
        if not (self.failed or said.finish or said.text.strip() or said.calls):
            raise _broken()

    def _read(self, data: str | bytes) -> dict[str, Any]:
        body = _object(data)
        return whole(body) if self._mend else body

    def _edited(self, body: dict[str, Any], part: str) -> dict[str, Any]:
        for name in _TOP:
            body.pop(name, None)
        if "model" in body:
            body["model"] = self._model
        if isinstance(self._answer, ChatAnswer) and self._answer.parts:
            _number_calls(body, self._answer.parts)
        for choice in _choices(body):
            for name in _CHOICE:
                choice.pop(name, None)
            if not self._keeps_logprobs and "logprobs" in choice:
                choice["logprobs"] = None
            if choice.get("finish_reason") in BROKEN_OFF:
                raise _broken()
            if self._thoughts:
                self._thoughts.edit(choice, part)
        return body


def _broken() -> ServerError:
    return ServerError("the model server broke its answer off")


def _number_calls(body: Mapping[str, Any], parts: Sequence[Part]) -> None:
    """Give each piece of a call the number and the id of its call: what the server gave may be another's."""
    none: dict[str, Any] = {}
    first = next((one for one in _choices(body) if one.get("index", 0) == 0), none)
    said = sub(first, "delta") or sub(first, "message")
    for one, part in zip(objects(said.get("tool_calls")), parts, strict=False):
        call = cast("dict[str, Any]", one)
        if "delta" in first:
            call["index"] = part.place
        if part.id:
            call["id"] = part.id
        what = cast("dict[str, Any]", sub(call, "function"))
        if part.name:
            what["name"] = part.name
        if what.get("arguments") is not None:
            what["arguments"] = part.arguments


def _choices(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    choices = body.get("choices")
    if isinstance(choices, list):
        for choice in cast("list[object]", choices):
            if isinstance(choice, dict):
                yield cast("dict[str, Any]", choice)


def _object(data: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ServerError("the model server sent something that is no answer") from None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
