# SPDX-License-Identifier: Apache-2.0
"""Listening for the page: at this machine's own address, at any free port, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from concurrent.futures import Future

from goodbot.cli.browser.site import SetupSite
from goodbot.cli.browser.stage import Stage
from goodbot.config import HttpConfig
from goodbot.daemon.http.http import starting
from goodbot.daemon.http.routes import application
from goodbot.daemon.http.server import HttpServer

HOST = "127.0.0.1"


@contextlib.contextmanager
def served(stage: Stage) -> Generator[str]:
    """The address that opens the page, once, until the end of the block. Raises ConfigError."""
    site = SetupSite(stage)
    server = HttpServer(HttpConfig(host=HOST), starting)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="setup page", daemon=True)
    thread.start()
    try:
        _done(asyncio.run_coroutine_threadsafe(_start(server, site), loop))
        yield f"http://{HOST}:{server.port}/#{site.code}"
    finally:
        _done(asyncio.run_coroutine_threadsafe(_stop(server), loop))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


async def _start(server: HttpServer, site: SetupSite) -> None:
    await server.start(0)
    await server.mount(application({"setup": site.routes()}, lambda _: True))


async def _stop(server: HttpServer) -> None:
    await server.stop()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _done(future: Future[None]) -> None:
    future.result()
