# SPDX-License-Identifier: Apache-2.0
"""What a child says until it has said it all, of which no more is kept than it may be."""

from __future__ import annotations

import asyncio
import contextlib

_PART = 64 * 1024
_GONE = 10.0
"""Seconds after its end for its pipes to close."""


class SaidTooMuchError(Exception):
    """A child has said more than it may: it is to be ended."""


async def all_of(
    process: asyncio.subprocess.Process, given: bytes = b"", *, most: int
) -> tuple[bytes, bytes]:
    """Give a child its input and wait for its end, as `communicate` does, which keeps whatever comes.

    Args:
        process: The child. What of it is no pipe is left alone.
        given: All of its input.
        most: Bytes of its output, and as many of its errors.

    Returns:
        Its output and its errors.

    Raises:
        SaidTooMuchError: One of the two is longer. The child goes on: `end` it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_tell(process.stdin, given))
            out = group.create_task(_read(process.stdout, most))
            errors = group.create_task(_read(process.stderr, most))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    await process.wait()
    return out.result(), errors.result()


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a child, if it is there, and wait until it is gone.

    What it has still said is thrown away: asyncio waits for pipes that nobody reads. Where a program that it
    has started keeps them, nobody waits for that one.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GONE):
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(_PART):
                    pass
            await process.wait()


async def _tell(stdin: asyncio.StreamWriter | None, given: bytes) -> None:
    if stdin is None:
        return
    with contextlib.suppress(ConnectionError):  # it is gone; its exit code tells more
        stdin.write(given)
        await stdin.drain()
    stdin.close()


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    said = bytearray()
    while stream is not None and (part := await stream.read(_PART)):
        said += part
        if len(said) > most:
            raise SaidTooMuchError
    return bytes(said)
