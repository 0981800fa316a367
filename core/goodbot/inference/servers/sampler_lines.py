# SPDX-License-Identifier: Apache-2.0
"""What the child that holds the model says, line by line, and how much of it is kept.

Code of a model may speak in it. It is read as it comes, whoever is slow to take it, so that one answer holds
up no other: what one request is answered has a limit, and so has what is logged and told of an error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, cast

from goodbot.base.worded_parts import reason_in

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of a line, and of all that one request is answered."""
_PART = 64 * 1024
"""Bytes that are read at once, at most."""
_REASON, _TRACE = 500, 20_000
"""Characters of a reason and of a trace that are kept."""
Answer = dict[str, Any]


class AnswerQueue(asyncio.Queue[Answer]):
    """The answers to one request."""

    size = 0
    """Bytes of them, taken or not."""


async def lines(process: asyncio.subprocess.Process) -> AsyncGenerator[tuple[Answer, int]]:
    """Its answers until it ends, and their bytes; those of a step come together.

    Raises ValueError for anything else.
    """
    assert process.stdout is not None  # noqa: S101  opened as a pipe
    began: list[bytes] = []
    """Of a line whose end has not come."""
    while part := await process.stdout.read(_PART):
        *whole, rest = part.split(b"\n")
        if whole:
            whole[0] = b"".join((*began, whole[0]))
            began = []
        for line in whole:
            yield answer(line), len(line)
        began.append(rest)
        if len(began) * _PART > LINE_LIMIT and sum(map(len, began)) > LINE_LIMIT:
            raise ValueError("that line is too long")


async def throw_away(process: asyncio.subprocess.Process) -> None:
    """Read what one that was killed has still said: asyncio waits for pipes that nobody reads."""
    while process.stdout is not None and await process.stdout.read(_PART):
        pass


def answer(line: bytes) -> Answer:
    """One line of its. Raises ValueError for what is none."""
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("that line lies too deep in itself") from error
    if not isinstance(found, dict) or "event" not in found:
        raise ValueError("that is no answer")
    said = cast("Answer", found)
    return {**said, "reason": reason_in(said)} if "reason" in said else said


def reason(said: object) -> str:
    """As much of why something failed as people are told."""
    return said if isinstance(said, str) and len(said) <= _REASON else str(said)[:_REASON]


def trace(said: object) -> str:
    """As much of where it failed as is logged."""
    return str(said)[-_TRACE:]
