# SPDX-License-Identifier: Apache-2.0
"""The objects of a JSON file, one after the other: one a line, or those of a list. No file is read whole."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded
from goodbot.config import private

LARGEST = 64 * 1024 * 1024
"""Characters of one object: an agent's prompt, and the tokens of it."""
_CHUNK = 1 << 18
_DECODER = json.JSONDecoder()
_BETWEEN = " \t\r\n,"


def objects(path: Path) -> Iterator[tuple[int, Any]]:
    """Each with how far its end is into the file, in characters. Raises UsageError, OSError, StoreError."""
    with io.TextIOWrapper(private.opened(path), encoding="utf-8-sig", errors="replace") as file:
        yield from _objects(file, path)


def _objects(file: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    buffer, read, began, wanted = "", 0, False, _CHUNK
    while True:
        piece = file.read(wanted)
        read += len(piece)
        buffer += piece
        if not began and (buffer := buffer.lstrip()):
            began, buffer = True, buffer.removeprefix("[")
        at = 0
        while True:
            while at < len(buffer) and buffer[at] in _BETWEEN:
                at += 1
            if at == len(buffer) or (buffer[at] == "]" and not buffer[at + 1 :].strip()):
                break
            try:
                found, end = _DECODER.raw_decode(buffer, at)
            except (ValueError, RecursionError) as error:
                if not piece or len(buffer) - at > LARGEST or isinstance(error, RecursionError):
                    odd = "{path} is no JSON behind character {number}"
                    where = read - len(buffer) + at
                    raise UsageError(Worded(odd, path=path.name, number=where)) from None
                break
            yield read - len(buffer) + end, found
            at = end
        buffer = buffer[at:]
        if not piece:
            return
        wanted = max(_CHUNK, len(buffer))  # a large object is not tried anew at every piece
