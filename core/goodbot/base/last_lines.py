# SPDX-License-Identifier: Apache-2.0
"""What a child says on its stderr: its pipe is kept empty, and the last lines are there when it has died."""

from __future__ import annotations

import asyncio
from collections import deque

_PART = 64 * 1024
_LONGEST = 500
"""Characters of a line that are kept."""
_BYTES = 4 * _LONGEST
"""They have no more, so that a line without end takes no memory."""


async def drain(process: asyncio.subprocess.Process, into: deque[str]) -> None:
    """Read until it says no more. `into` keeps as many lines as it has room for."""
    assert process.stderr is not None  # noqa: S101  opened as a pipe
    rest = b""
    while part := await process.stderr.read(_PART):
        *lines, rest = (rest + part).split(b"\n")
        into.extend(map(_line, lines))
        rest = rest[:_BYTES]
    if rest:
        into.append(_line(rest))


def _line(said: bytes) -> str:
    return said[:_BYTES].decode("utf-8", "replace").rstrip()[:_LONGEST]
