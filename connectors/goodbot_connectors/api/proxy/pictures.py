"""Pictures and files in a request, left out while it is read: our own model sees none of them.

Agents send the whole conversation again each time, screenshots and all, so that it grows to many megabytes
of which a model of words needs few. Only a text that stands where the APIs have such data is left out.
"""

from __future__ import annotations

import re

_AT = re.compile(
    rb'(?<!\\)"(?:'
    rb'(?:url|image_url|file_data)"\s*:\s*"data:|'  # OpenAI's APIs
    rb'data"\s*:\s*"(?=[A-Za-z0-9+/=_\\-]{4096}))'  # Anthropic's, and sound: words have gaps
)
_LONGEST = 8192
"""Bytes that tell whether data begins."""
_NEXT = re.compile(rb'["\\]')


class Pictures:
    """Leaves out what pictures and files hold; their places stay."""

    def __init__(self) -> None:
        self._rest = b""
        self._within = False

    def feed(self, piece: bytes) -> bytes:
        """What is left of it by now."""
        self._rest += piece
        found = bytearray()
        while True:
            if self._within and not self._skipped():
                return bytes(found)
            begun = _AT.search(self._rest)
            if begun is None:
                break
            found += self._rest[: begun.end()]
            self._rest, self._within = self._rest[begun.end() :], True
        sure = max(0, len(self._rest) - _LONGEST)
        sure -= self._rest[sure - 1 : sure] == b"\\"  # it says what the next sign is
        found += self._rest[:sure]
        self._rest = self._rest[sure:]
        return bytes(found)

    def end(self) -> bytes:
        """What was held back."""
        return self._rest

    def _skipped(self) -> bool:
        """Whether the end of the data was there."""
        at = 0
        while (found := _NEXT.search(self._rest, at)) is not None:
            at = found.start()
            if self._rest[at : at + 1] == b'"':
                self._rest, self._within = self._rest[at:], False
                return True
            if at + 1 == len(self._rest):  # what it stands before comes with the next piece
                break
            at += 2
        self._rest = self._rest[at:] if found is not None else b""
        return False
