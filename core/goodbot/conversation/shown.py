# SPDX-License-Identifier: Apache-2.0
"""What people see of an answer while it is written, where it may be begun anew."""

from __future__ import annotations

from goodbot.api.connector import ReplyStream


class Shown:
    """What a stream shows of an answer that may be begun anew: what is there is not written twice."""

    def __init__(self, stream: ReplyStream) -> None:
        self._stream, self._size, self._at = stream, 0, 0
        self.note, self.language = stream.note, stream.language

    def begin(self) -> None:
        """The answer comes from its first word on."""
        self._at = 0

    async def append(self, text: str) -> None:
        """More of it; where it goes another way than before, its end still puts it right."""
        self._at += len(text)
        if (new := self._at - self._size) > 0:
            self._size = self._at
            await self._stream.append(text[-new:])
