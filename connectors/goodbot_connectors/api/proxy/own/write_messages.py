# SPDX-License-Identifier: Apache-2.0
"""Answers as Anthropic's `/v1/messages` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy import errors
from goodbot_connectors.api.proxy.dialects.shapes import ChatResponse
from goodbot_connectors.api.proxy.own.deltas import End, Part, ResponseHead
from goodbot_connectors.kit.fields import as_json

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_NOTHING = ChatResponse(text="")


class MessageWriter:
    """Events, or one `message`. Blocks follow one another: text, then a block for each call."""

    def __init__(self, about: ResponseHead) -> None:
        self._about = about
        self._open = -1
        """The block that is being written; its kind below."""
        self._place: int | str = ""
        """The call that it is, or `text` or `thinking`."""

    def start(self) -> bytes:
        """The message before there is a word."""
        return _event("message_start", message=self._message([], None, End(said=_NOTHING)))

    def more(self, piece: str | Part | Thought) -> bytes:
        """Words, a call, or what is thought."""
        place, block, delta = _block(piece)
        begun = b""
        if self._open < 0 or place != self._place:
            begun = self._close()
            self._open, self._place = self._open + 1, place
            begun += _event("content_block_start", index=self._open, content_block=block)
        return begun + _event("content_block_delta", index=self._open, delta=delta)

    def end(self, end: End) -> bytes:
        """Why it ended, and the tokens."""
        delta = {"stop_reason": _REASONS.get(end.said.finish, "end_turn"), "stop_sequence": None}
        return (
            self._close() + _event("message_delta", delta=delta, usage=_usage(end)) + _event("message_stop")
        )

    def failed(self, message: str) -> bytes:
        """In the place of an end."""
        return errors.event("/v1/messages", message)

    def whole(self, end: End) -> dict[str, Any]:
        """One object."""
        said = end.said
        blocks: list[dict[str, Any]] = []
        if said.thought:
            blocks.append({"type": "thinking", "thinking": said.thought, "signature": ""})
        if said.text or not said.calls:
            blocks.append({"type": "text", "text": said.text})
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
            for call in said.calls
        ]
        return self._message(blocks, _REASONS.get(said.finish, "end_turn"), end)

    def _message(self, blocks: list[dict[str, Any]], reason: str | None, end: End) -> dict[str, Any]:
        return {
            "id": f"msg_{self._about.id}",
            "type": "message",
            "role": "assistant",
            "model": self._about.model,
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": _usage(end),
        }

    def _close(self) -> bytes:
        return _event("content_block_stop", index=self._open) if self._open >= 0 else b""


def _block(piece: str | Part | Thought) -> tuple[int | str, dict[str, Any], dict[str, Any]]:
    """The place of a piece, how its block begins, and what is new in it."""
    if isinstance(piece, str):
        return "text", {"type": "text", "text": ""}, {"type": "text_delta", "text": piece}
    if isinstance(piece, Thought):
        begun = {"type": "thinking", "thinking": "", "signature": ""}
        return "thinking", begun, {"type": "thinking_delta", "thinking": piece.text}
    called: dict[str, Any] = {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}}
    return piece.place, called, {"type": "input_json_delta", "partial_json": piece.arguments}


def _usage(end: End) -> dict[str, int]:
    return {"input_tokens": end.prompt_count, "output_tokens": end.count}


def _object(text: str) -> Mapping[str, Any]:
    try:
        return as_json(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


def _event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode("utf-8", "replace")
