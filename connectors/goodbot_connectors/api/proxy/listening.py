"""Reading along: the bytes of an answer as they go by, what it says at the end."""

from __future__ import annotations

import json
from typing import Any, cast

from goodbot.errors import ServerError
from goodbot.serving.sse import EventStream

from goodbot_connectors.api.proxy.dialects.shapes import Answer, Said

LARGEST = 16 * 1024 * 1024
"""Bytes of an answer that is not streamed; of a longer one nothing is kept."""
_AT_ONCE = 16 * 1024
"""Bytes of a stream that are read together: it costs less than piece by piece."""
_ENDS = (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete")


class Listener:
    """Hands what goes by to the one who knows its API. It never fails: what it cannot read is not kept."""

    def __init__(self, answer: Answer, *, stream: bool) -> None:
        self._answer, self._stream = answer, stream
        self._events = EventStream()
        self._pieces: list[bytes] = []
        self._size = 0
        self._lost = False

    def feed(self, piece: bytes) -> None:
        """More bytes."""
        if self._lost:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._stream and (self._size >= _AT_ONCE or any(end in piece for end in _ENDS)):
            self._read()
        elif self._size > LARGEST:
            self._lose()

    def said(self) -> Said:
        """What is known now; without a `finish` it has not come to its end."""
        if self._stream:
            self._read()
        elif not self._lost:
            self._answer.whole(parsed(b"".join(self._pieces)))
            self._lose()
        return self._answer.said()

    def end(self) -> Said:
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
        if data.strip() != "[DONE]" and (found := parsed(data)):
            self._answer.event(found)

    def _lose(self) -> None:
        self._lost, self._pieces = True, []


def parsed(data: str | bytes) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
