# SPDX-License-Identifier: Apache-2.0
"""Listening for the page: at this machine's own address, at any free port, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from goodbot.base.tasks import end_tasks
from goodbot.cli.browser.site import SetupSite
from goodbot.cli.browser.stage import Stage
from goodbot.config import HttpConfig
from goodbot.daemon.http.http import starting
from goodbot.daemon.http.routes import application
from goodbot.daemon.http.server import HttpServer

HOST = "127.0.0.1"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupPage:
    """Where the page is. Its methods are for other threads than the one that answers it."""

    site: SetupSite
    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def address(self) -> str:
        """What opens it, once."""
        return f"http://{HOST}:{self.port}/#{self.site.code}"

    def renew(self) -> bool:
        """As `SetupSite.renew`."""

        async def renewed() -> bool:
            return self.site.renew()

        return _done(asyncio.run_coroutine_threadsafe(renewed(), self.loop))


@contextlib.contextmanager
def served(stage: Stage) -> Generator[SetupPage]:
    """The page, until the end of the block. Raises ConfigError."""
    site = SetupSite(stage)
    server = HttpServer(HttpConfig(host=HOST), starting)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="setup page", daemon=True)
    thread.start()
    try:
        _done(asyncio.run_coroutine_threadsafe(_start(server, site), loop))
        yield SetupPage(site=site, port=server.port, loop=loop)
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
    await end_tasks(*left)


def _done(future: Future[T]) -> T:
    return future.result()
