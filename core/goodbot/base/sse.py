# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: bytes as they come in, the data of each event out.

After https://html.spec.whatwg.org/multipage/server-sent-events.html, but an event that the end of the stream
cuts short of its empty line counts. Comments keep a connection alive and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from goodbot.base.errors import ServerError

_LARGEST = 4 * 1024 * 1024
"""Bytes of one event: log-probs of 20 tokens for each of a few tokens are some kilobytes."""


class EventStream:
    """Reads one stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        """The last byte was a carriage return: a line feed that comes next belongs to it."""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The data of the events that `chunk` completes. Raises ServerError for one without end."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        *lines, self._rest = _lines(self._rest + chunk)
        if len(self._rest) + self._size > _LARGEST:
            raise ServerError("the model server sent an event without end")
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[str]:
        """What the end of the stream completes."""
        rest, self._rest = self._rest, b""
        yield from self._line(rest)
        yield from self._line(b"")

    def _line(self, line: bytes) -> Iterator[str]:
        if not line:
            data, self._data, self._size = self._data, [], 0
            if data:
                yield b"\n".join(data).decode("utf-8", "replace")
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
            if self._size > _LARGEST:
                raise ServerError("the model server sent an event without end")


def _lines(text: bytes) -> list[bytes]:
    """The lines of a text, and at the end what is no whole line yet."""
    lines = text.splitlines(keepends=True)
    whole = [line.rstrip(b"\r\n") for line in lines]
    if not lines or lines[-1].endswith((b"\r", b"\n")):
        return [*whole, b""]
    return whole
