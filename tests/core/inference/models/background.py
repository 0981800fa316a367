# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback in a thread of its own: blocking code and subprocesses may talk to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.support import patience


class BackgroundServer:
    """Subclasses build `application`. Use `with` or `async with`; `url` is where it listens."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        raise NotImplementedError

    def __enter__(self) -> Any:
        self._thread.start()
        assert self._ready.wait(patience(10))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(patience(10))

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        await asyncio.to_thread(self.__exit__, *error)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()


def answering(value: Any) -> Callable[[web.Request], Any]:
    """A handler that answers with one JSON value."""

    async def handler(_: web.Request) -> web.Response:
        return web.json_response(value)

    return handler
