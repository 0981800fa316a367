# SPDX-License-Identifier: Apache-2.0
"""The calls of tools in what a model writes: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator

from goodbot_connectors.api.proxy.dialects.shapes import CALL, CALL_END, ToolCall
from goodbot_connectors.api.proxy.own.deltas import Part
from goodbot_connectors.kit.fields import as_json, string

_DECODER = json.JSONDecoder()


class CallReader:
    """Reads pieces of text. Only tools in `names` can be called; what is no call stays text."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._rest = ""
        self._inside = False
        self._looked = 0
        """So much of the rest holds no end of a call."""
        self._text: list[str] = []
        self.calls: list[ToolCall] = []

    @property
    def text(self) -> str:
        """All that is no call."""
        return "".join(self._text)

    def feed(self, piece: str) -> Iterator[str | Part]:
        """More text; what of it can be told apart by now."""
        if not self._names:
            yield from self._said(piece)
            return
        self._rest += piece
        while self._rest:
            if self._inside:
                end = self._rest.find(CALL_END, self._looked)
                if end < 0:
                    self._looked = max(0, len(self._rest) - len(CALL_END))
                    return
                body, self._rest = self._rest[:end], self._rest[end + len(CALL_END) :]
                self._inside, self._looked = False, 0
                yield from self._call(body, f"{CALL}{body}{CALL_END}")
                continue
            start = self._rest.find(CALL)
            if start < 0:
                sure = len(self._rest) - _beginning(self._rest)
                text, self._rest = self._rest[:sure], self._rest[sure:]
                yield from self._said(text)
                return
            text, self._rest = self._rest[:start], self._rest[start + len(CALL) :]
            self._inside, self._looked = True, 0
            yield from self._said(text.rstrip() if not text.strip() else text)

    def end(self) -> Iterator[str | Part]:
        """What the end of the answer tells: a call may lack its last mark."""
        rest, self._rest = self._rest, ""
        if self._inside:
            yield from self._call(rest, f"{CALL}{rest}")
        else:
            yield from self._said(rest)

    def _said(self, text: str) -> Iterator[str]:
        if self.calls and not text.strip():
            return  # between two calls, or after the last
        if text:
            self._text.append(text)
            yield text

    def _call(self, body: str, written: str) -> Iterator[str | Part]:
        found = _read(body)
        if found is None or found[0] not in self._names:
            yield from self._said(written)
            return
        name, arguments = found
        call = ToolCall(id=f"call_{uuid.uuid4().hex[:24]}", name=name, arguments=arguments)
        self.calls.append(call)
        yield Part(place=len(self.calls) - 1, id=call.id, name=name, arguments=arguments)


def _read(body: str) -> tuple[str, str] | None:
    """The name and the arguments, as they were written, of a call; None if it is none."""
    try:
        told = as_json(json.loads(body))
        name, given = string(told, "name"), told.get("arguments", {})
        if isinstance(given, str):
            return (name, given) if name and isinstance(json.loads(given), dict) else None
        if not name or not isinstance(given, dict):
            return None
        at = body.rfind('"arguments"')
        start = body.find("{", at) if at >= 0 else -1
        if start >= 0:
            value, stop = _DECODER.raw_decode(body, start)
            if value == given:
                return name, body[start:stop]
        return name, json.dumps(given, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _beginning(text: str) -> int:
    """How many of the last characters may be the beginning of a call's mark."""
    longest = min(len(text), len(CALL) - 1)
    return next((n for n in range(longest, 0, -1) if CALL.startswith(text[-n:])), 0)
