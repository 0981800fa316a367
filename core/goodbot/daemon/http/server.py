# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: where it listens, who is let in. Import it only to listen: aiohttp.

What is mounted is exchanged under a running server, so that the port is not let go of while one App
makes way for the next. `goodbot.base.crowd` says how many there may be, and what one may cost.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web

from goodbot.base.addresses import is_here
from goodbot.base.answers import JsonResponse
from goodbot.base.connection import takes_its_time
from goodbot.base.crowd import LAST_CALLS, Crowd
from goodbot.base.descriptors import bound
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.config import HttpConfig
from goodbot.config.sections import PUBLISHED
from goodbot.daemon.http import health, names, unready
from goodbot.daemon.http.http import Parts

logger = logging.getLogger(__name__)

CONNECTIONS = 512
"""At once, on the port."""
WAITING = 64
"""Requests at once on the port that wait for an answer to begin; programs come again, where they are told."""
AT_HOME = 128
"""At once, on the Unix socket: nobody else takes these."""


class HttpServer:
    """Listens on the configured host; answers health, and whatever is mounted."""

    def __init__(self, config: HttpConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._names = names.known(config)
        self._crowds: list[Crowd] = []
        """Of the port, and of the Unix socket."""
        self._mounted: web.AppRunner | None = None
        self._path: Path | None = None
        self._under_way: set[asyncio.Task[Any]] = set()

    async def start(self, port: int, listening: socket.socket | None = None, *, others: int = 0) -> None:
        """Listen, or take over what is `listening`; where `port` is taken, at one of the `others` behind it.

        Raises ConfigError when none can be had.
        """
        host = self._config.host
        try:
            sockets = [listening] if listening is not None else await _free(host, port, others)
            self._listen(CONNECTIONS, WAITING, sockets)
        except OSError as error:
            await self.stop()
            taken = (
                "[http] cannot listen on {host} port {port} ({why}): set another port there, or stop what "
                "holds this one"
            )
            why = error.strerror or str(error)
            raise ConfigError(Worded(taken, host=host, port=port, why=why)) from error
        if not is_here(host) and self._config.url != os.environ.get(PUBLISHED):
            logger.warning("[http] host = %s: others on the network can reach goodbot", host)

    def _listen(self, most: int, waiting: int, sockets: list[socket.socket]) -> None:
        crowd = Crowd(
            self._asked,
            self._request,
            sockets,
            most,
            waiting=waiting,
            health=health.PATHS,
            auto_decompress=False,
        )
        self._crowds.append(crowd)

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        return self._crowds[0].port

    async def listen_at(self, path: Path) -> None:
        """Listen on a Unix socket, too, for its owner alone. Idempotent; raises OSError.

        What lies there was left by a daemon that was killed: call it only with the state directory's
        lock in hand.
        """
        if not self._crowds or self._path is not None:
            return
        path.unlink(missing_ok=True)
        own = socket.socket(socket.AF_UNIX)
        umask = os.umask(0o177)
        try:
            own.bind(os.fspath(path))
        except OSError:
            own.close()
            raise
        finally:
            os.umask(umask)
        self._listen(AT_HOME, AT_HOME, [own])
        self._path = path

    async def mount(self, application: web.Application) -> None:
        """Answer with this application what is not health; the one before is unmounted."""
        await self.unmount()
        application.on_response_prepare.append(_begins)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        self._mounted = runner

    async def unmount(self) -> None:
        """Let what is under way end, then end it; from now on we are starting."""
        runner, self._mounted = self._mounted, None
        if runner is None:
            return
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=LAST_CALLS)
        for task in list(self._under_way):
            task.cancel()
        await runner.cleanup()

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        await self.unmount()
        crowds, self._crowds = self._crowds, []
        await asyncio.gather(*(crowd.close() for crowd in crowds))
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        if len(request.headers.getall(hdrs.HOST, [])) != 1:
            return JsonResponse(400, {"status": "a request must name one host"})
        if not names.ours(request, self._names):
            return JsonResponse(421, {"status": "this host name is not goodbot's"})
        if request.path in health.PATHS:
            return await health.answer(request, self._parts)
        if request.path == unready.SCRIPT_PATH:
            return unready.script()
        server = self._mounted.server if self._mounted else None
        if server is None or not isinstance(request, web.Request):
            return unready.not_yet(request, "starting")
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  aiohttp runs each request in one
        self._under_way.add(task)
        try:
            return await server.request_handler(request)
        finally:
            self._under_way.discard(task)

    def _request(self, *parts: Any) -> web.BaseRequest:
        """The request as the mounted application wants it."""
        server = self._mounted.server if self._mounted else None
        if server is None:
            return web.BaseRequest(*parts, loop=asyncio.get_running_loop())
        return server.request_factory(*parts)


async def _begins(request: web.Request, _: web.StreamResponse) -> None:
    """An answer begins: a page's line, a stream and whatever else lasts waits for nobody from now on."""
    takes_its_time(request)


async def _free(host: str, port: int, others: int) -> list[socket.socket]:
    """Sockets at that port, or at the first free one of the next ones. Raises OSError of the first."""
    try:
        return await bound(host, port)
    except OSError as error:
        for other in range(port + 1, port + 1 + others):
            if error.errno == errno.EADDRINUSE:
                with contextlib.suppress(OSError):
                    return await bound(host, other)
        raise
