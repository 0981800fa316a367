"""A child process that is never lost, not even while it starts."""

from __future__ import annotations

import asyncio
from typing import Any


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """`asyncio.create_subprocess_exec`, cancelled only once the process is there. Raises OSError.

    Cancelled half way, CPython's own kills the child, then waits until the last process that holds its
    pipes is gone: for ever, where the child has started another. Here the process is returned, and the
    caller is cancelled at what it awaits next; let that be where it ends what it has started.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **options))
    cancelled = False
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if starting.cancelled() or starting.exception() is not None:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine runs in a task
        task.uncancel()  # the same cancellation, put off: whoever counts them counts one
        task.cancel()
    return starting.result()
