# SPDX-License-Identifier: Apache-2.0
"""Reading along: the bytes of an answer as they go by, what it says at the end."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, cast

import aiohttp
from goodbot.api.chat_answers import is_failure
from goodbot.base.errors import ServerError
from goodbot.base.sse import EventStream

from goodbot_connectors.api.proxy.dialects.shapes import ChatResponse, ResponseReader
from goodbot_connectors.kit.bridge.encoded import Undone
from goodbot_connectors.kit.bridge.refused import HttpError

LARGEST = 16 * 1024 * 1024
"""Bytes of an answer that is not streamed; of a longer one nothing is kept."""
LONGEST = 256 * 1024 * 1024
"""Bytes of a stream, undone; of a longer one nothing is kept."""
WHOLE = 64 * 1024 * 1024
"""Bytes of an answer that is passed on at once: 2,048 texts as numbers are 40 MB."""
_AT_ONCE = 16 * 1024
"""Bytes of a stream that are read together: it costs less than piece by piece."""
_LAST = ("[DONE]", "message_stop", "response.completed", "response.incomplete")
_FAILED = ("error", "response.failed", "response.cancelled")
_ENDS = tuple(one.encode() for one in _LAST)
_OVERLAP = max(map(len, _ENDS)) - 1
"""Bytes of what came before in which a mark may have begun."""


class ResponseTap:
    """Hands what goes by to the one who knows its API. It never fails: what it cannot read is not kept."""

    def __init__(self, answer: ResponseReader, *, stream: bool, coding: str = "") -> None:
        """`coding`: what the bytes are compressed with."""
        self._answer, self._stream = answer, stream
        self._layer = Undone(coding, LONGEST)
        self._events = EventStream()
        self._pieces: list[bytes] = []
        self._size = 0
        self._lost = False
        self._before = b""
        self._near = False
        """An end mark has gone by, if perhaps as a word of the answer: each piece is read at once."""
        self.over = False
        """The event with which a stream ends has been read."""
        self.failed = False
        """Whoever answers has said in the stream that it failed."""
        self.coded = bool(coding)
        self.number = 0
        """That the next event has, where the API counts them."""

    @property
    def cut(self) -> bool:
        """Whether a stream that was read to its last byte came to no end: whoever wrote it is gone."""
        ended = self.over or self.failed or self._answer.said().finish
        return self._stream and not self._lost and not ended

    def feed(self, piece: bytes) -> None:
        """More bytes."""
        if self._lost:
            return
        try:
            for part in self._layer.feed(piece):
                self._take(part)
        except HttpError:
            self._lose()

    def _take(self, piece: bytes) -> None:
        if self._lost:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._stream and (self._ends(piece) or self._size >= _AT_ONCE):
            self._read()
        elif self._size > LARGEST:
            self._lose()

    def _ends(self, piece: bytes) -> bool:
        if not self._near:
            seam = self._before + piece
            self._near = any(end in seam for end in _ENDS)
            self._before = seam[-_OVERLAP:]
        return self._near

    def said(self) -> ChatResponse:
        """What is known now; without a `finish` it has not come to its end."""
        if self._stream:
            self._read()
        elif not self._lost:
            self._answer.whole(parsed(b"".join(self._pieces)))
            self._lose()
        return self._answer.said()

    def end(self) -> ChatResponse:
        """What is known once the last byte is there."""
        if self._stream and not self._lost:
            self._read()
            for data in self._events.end():
                self._event(data)
        return self.said()

    def _read(self) -> None:
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        if self._lost or not data:
            return
        try:
            for event in self._events.feed(data):
                self._event(event)
        except ServerError:
            self._lose()

    def _event(self, data: str) -> None:
        if data.strip() == "[DONE]":
            self.over = True
        elif found := parsed(data):
            self._answer.event(found)
            self.over = self.over or found.get("type") in _LAST
            self.failed = self.failed or found.get("type") in _FAILED or is_failure(found)
            if isinstance(number := found.get("sequence_number"), int):
                self.number = number + 1

    def _lose(self) -> None:
        self._lost, self._pieces = True, []


async def pieces(title: str, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """The bytes of an answer as they come, undone, and no more of them than are kept of one.

    Raises ServerError for one without end, and what aiohttp raises.
    """
    left = (
        LONGEST  # 2,048 texts as numbers are 40 MB, and who is told to try again asks for all of them again
    )
    async for piece in response.content.iter_any():
        left -= len(piece)
        if left < 0:
            raise ServerError(f"{title} does not come to an end with its answer")
        yield piece


async def at_once(title: str, response: aiohttp.ClientResponse) -> bytes:
    """All of them. Raises as `pieces`."""
    return b"".join([piece async for piece in pieces(title, response)])


def parsed(data: str | bytes) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
