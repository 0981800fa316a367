# SPDX-License-Identifier: Apache-2.0
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
        data, at = self._rest + piece, 0
        found = bytearray()
        while True:
            if self._within:
                at = self._skipped(data, at)
                if self._within:
                    self._rest = data[at:]
                    return bytes(found)
            begun = _AT.search(data, at)
            if begun is None:
                break
            found += data[at : begun.end()]
            at, self._within = begun.end(), True
        sure = max(at, len(data) - _LONGEST)
        sure -= sure > at and data[sure - 1 : sure] == b"\\"  # it says what the next sign is
        found += data[at:sure]
        self._rest = data[sure:]
        return bytes(found)

    def end(self) -> bytes:
        """What was held back."""
        return self._rest

    def _skipped(self, data: bytes, at: int) -> int:
        """Where the data ends that is left out, or from where on it is not known."""
        while (found := _NEXT.search(data, at)) is not None:
            at = found.start()
            if data[at : at + 1] == b'"':
                self._within = False
                return at
            if at + 1 == len(data):  # what it stands before comes with the next piece
                return at
            at += 2
        return len(data)
