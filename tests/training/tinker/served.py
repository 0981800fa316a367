# SPDX-License-Identifier: Apache-2.0
"""A server of one handler."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

from aiohttp import web


@contextlib.asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncGenerator[str]:
    """Where it listens."""
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
