# SPDX-License-Identifier: Apache-2.0
"""Answers as `/v1/responses` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy.dialects.shapes import ToolCall
from goodbot_connectors.api.proxy.own.deltas import End, Part, ResponseHead
from goodbot_connectors.kit.fields import as_json, string

_ECHOED = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
    "user",
)
"""Fields of the request that the answer repeats."""


class ResponseWriter:
    """Events, or one `response`. An item for the words, then one for each call."""

    def __init__(self, about: ResponseHead) -> None:
        self._about = about
        self._number = -1
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[int, ToolCall] = {}
        self._done: list[dict[str, Any]] = []
        self._open = ""
        """`message`, or the place of the call that is being written."""

    def start(self) -> bytes:
        """The response before there is a word."""
        response = self._response("in_progress", [], None)
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def more(self, piece: str | Part | Thought) -> bytes:
        """Words, or a call; a thought is told when the answer is whole."""
        if isinstance(piece, Thought):
            self._thought.append(piece.text)
            return b""
        if self._thought:
            told = self._think("".join(self._thought))
            self._thought = []
            return told + self.more(piece)
        key = "message" if isinstance(piece, str) else str(piece.place)
        begun = b"" if key == self._open else self._close() + self._begin(key, piece)
        index = len(self._done)
        if isinstance(piece, str):
            self._text.append(piece)
            return begun + self._event(
                "response.output_text.delta",
                item_id=self._item_id(),
                output_index=index,
                content_index=0,
                delta=piece,
                logprobs=[],
            )
        before = self._calls.get(piece.place, ToolCall(id=piece.id, name=piece.name, arguments=""))
        call = ToolCall(id=before.id, name=before.name, arguments=before.arguments + piece.arguments)
        self._calls[piece.place] = call
        if call.name in self._about.asked.custom:  # its text is told when it is whole
            return begun
        return begun + self._event(
            "response.function_call_arguments.delta",
            item_id=self._item_id(),
            output_index=index,
            delta=piece.arguments,
        )

    def end(self, end: End) -> bytes:
        """The response again, whole."""
        closed = self._close()
        if self._thought:
            closed += self._think("".join(self._thought))
        if not any(item["type"] != "reasoning" for item in self._done):
            closed += self._begin("message", "") + self._close()
        status = _status(end)
        response = self._response(status, self._done, end)
        return closed + self._event(f"response.{status}", response=response)

    def failed(self, message: str) -> bytes:
        """The response again, as far as it came."""
        error = {"code": "server_error", "message": message}
        return self._event("response.failed", response=self._response("failed", self._done, None, error))

    def whole(self, end: End) -> dict[str, Any]:
        """One object."""
        if end.said.thought:
            self._think(end.said.thought)
        if end.said.text or not end.said.calls:
            self._open, self._text = "message", [end.said.text]
            self._close()
        for place, call in enumerate(end.said.calls):
            self._open, self._calls[place] = str(place), call
            self._close()
        return self._response(_status(end), self._done, end)

    def _think(self, thought: str) -> bytes:
        """The item that holds what was thought, at once."""
        index = len(self._done)
        about: dict[str, Any] = {"type": "reasoning", "id": self._item_id(), "summary": []}
        content = [{"type": "reasoning_text", "text": thought}]
        item = {**about, "content": content, "status": "completed"}
        begun = self._event("response.output_item.added", output_index=index, item=about)
        self._done.append(item)
        return begun + self._event("response.output_item.done", output_index=index, item=item)

    def _begin(self, key: str, piece: str | Part) -> bytes:
        self._open = key
        index = len(self._done)
        if isinstance(piece, str):
            item: dict[str, Any] = _message(self._item_id(), [], "in_progress")
            part = _part("")
            return self._event("response.output_item.added", output_index=index, item=item) + self._event(
                "response.content_part.added",
                item_id=item["id"],
                output_index=index,
                content_index=0,
                part=part,
            )
        call = ToolCall(id=piece.id, name=piece.name, arguments="")
        item = self._call_item(call, "in_progress")
        return self._event("response.output_item.added", output_index=index, item=item)

    def _close(self) -> bytes:
        """End the item that is being written."""
        key, index, id_ = self._open, len(self._done), self._item_id()
        if not key:
            return b""
        if key == "message":
            text, self._text = "".join(self._text), []
            part = _part(text)
            about: dict[str, Any] = {"item_id": id_, "output_index": index, "content_index": 0}
            item = _message(id_, [part], "completed")
            told = self._event("response.output_text.done", **about, text=text, logprobs=[])
            told += self._event("response.content_part.done", **about, part=part)
        else:
            call = self._calls[int(key)]
            item = self._call_item(call, "completed")
            told = b""
            if call.name not in self._about.asked.custom:
                told = self._event(
                    "response.function_call_arguments.done",
                    item_id=id_,
                    output_index=index,
                    name=call.name,
                    arguments=call.arguments,
                )
        self._done.append(item)
        self._open = ""
        return told + self._event("response.output_item.done", output_index=index, item=item)

    def _item_id(self) -> str:
        return f"item_{self._about.id}_{len(self._done)}"

    def _call_item(self, call: ToolCall, status: str) -> dict[str, Any]:
        about = {"id": self._item_id(), "call_id": call.id, "name": call.name, "status": status}
        if call.name in self._about.asked.custom:
            return {"type": "custom_tool_call", **about, "input": _input(call.arguments)}
        return {"type": "function_call", **about, "arguments": call.arguments}

    def _response(
        self,
        status: str,
        output: list[dict[str, Any]],
        end: End | None,
        error: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        about, body = self._about, self._about.body
        usage = None
        if end is not None:
            usage = {
                "input_tokens": end.prompt_count,
                "output_tokens": end.count,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": end.prompt_count + end.count,
            }
        short = {"reason": "max_output_tokens"} if status == "incomplete" else None
        defaults: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {
            "id": f"resp_{about.id}",
            "object": "response",
            "created_at": about.created,
            "status": status,
            "error": error,
            "incomplete_details": short,
            "model": about.model,
            **dict.fromkeys(_ECHOED),
            **defaults,
            **{name: body[name] for name in _ECHOED if body.get(name) is not None},
            "output": list(output),
            "previous_response_id": None,
            "store": False,
            "usage": usage,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        told = {"type": kind, "sequence_number": self._number, **fields}
        data = json.dumps(told, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(id_: str, content: list[Mapping[str, Any]], status: str) -> dict[str, Any]:
    return {"type": "message", "id": id_, "role": "assistant", "status": status, "content": content}


def _status(end: End) -> str:
    return "incomplete" if end.said.finish == "length" else "completed"


def _input(arguments: str) -> str:
    """The text that a custom tool is called with."""
    try:
        return string(as_json(json.loads(arguments)), "input")
    except (ValueError, RecursionError):
        return arguments
