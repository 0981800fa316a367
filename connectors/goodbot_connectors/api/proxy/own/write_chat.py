# SPDX-License-Identifier: Apache-2.0
"""Answers as `/v1/chat/completions` and `/v1/completions` have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy import errors
from goodbot_connectors.api.proxy.dialects.shapes import called
from goodbot_connectors.api.proxy.own.deltas import End, Part, ResponseHead
from goodbot_connectors.kit.fields import sub

_DONE = b"data: [DONE]\n\n"


class ChatWriter:
    """Chunks, or one `chat.completion`."""

    def __init__(self, about: ResponseHead) -> None:
        self._about = about
        self._usage = sub(about.body, "stream_options").get("include_usage") is True

    def start(self) -> bytes:
        """The role, before there is a word."""
        return self._chunk({"role": "assistant", "content": ""})

    def more(self, piece: str | Part | Thought) -> bytes:
        """Words, a call, or what is thought."""
        if isinstance(piece, Thought):
            return self._chunk({"reasoning_content": piece.text})
        if isinstance(piece, str):
            return self._chunk({"content": piece})
        about = {"id": piece.id, "type": "function"} if piece.name else {}
        name = {"name": piece.name} if piece.name else {}
        return self._chunk(
            {
                "tool_calls": [
                    {"index": piece.place, **about, "function": {**name, "arguments": piece.arguments}}
                ]
            }
        )

    def end(self, end: End) -> bytes:
        """Why it ended; the tokens where they were asked for."""
        last = self._chunk({}, end.said.finish)
        if self._usage:
            last += _data({**self._head("chat.completion.chunk"), "choices": [], "usage": usage(end)})
        return last + _DONE

    def failed(self, message: str) -> bytes:
        """In the place of an end."""
        return errors.event("/v1/chat/completions", message)

    def whole(self, end: End) -> dict[str, Any]:
        """One object."""
        said = end.said
        calls = [called(call.id, call.name, call.arguments) for call in said.calls]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said.text or (None if calls else ""),
            "refusal": None,
            **({"tool_calls": calls} if calls else {}),
            **({"reasoning_content": said.thought} if said.thought else {}),
        }
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}],
            "usage": usage(end),
        }

    def _head(self, kind: str) -> dict[str, Any]:
        about = self._about
        return {"id": f"chatcmpl-{about.id}", "object": kind, "created": about.created, "model": about.model}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice]})


class CompletionWriter:
    """Chunks, or one `text_completion`."""

    def __init__(self, about: ResponseHead) -> None:
        self._about = about

    def start(self) -> bytes:
        """Nothing comes before the words."""
        return b""

    def more(self, piece: str | Part | Thought) -> bytes:
        """Words; this API has no place for a thought."""
        if isinstance(piece, Thought):
            return b""
        return _data(self._object(piece if isinstance(piece, str) else "", None))

    def end(self, end: End) -> bytes:
        """Why it ended."""
        return _data({**self._object("", end.said.finish), "usage": usage(end)}) + _DONE

    def failed(self, message: str) -> bytes:
        """In the place of an end."""
        return errors.event("/v1/completions", message)

    def whole(self, end: End) -> dict[str, Any]:
        """One object."""
        return {**self._object(end.said.text, end.said.finish), "usage": usage(end)}

    def _object(self, text: str, finish: str | None) -> dict[str, Any]:
        about = self._about
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {
            "id": f"cmpl-{about.id}",
            "object": "text_completion",
            "created": about.created,
            "model": about.model,
            "choices": [choice],
        }


def usage(end: End) -> dict[str, Any]:
    """Tokens, as these APIs count them."""
    return {
        "prompt_tokens": end.prompt_count,
        "completion_tokens": end.count,
        "total_tokens": end.prompt_count + end.count,
    }


def _data(value: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
