"""The HTTP server: who is let in, what one connection may cost. Import it only to listen: aiohttp.

What is mounted is exchanged under a running server, so that the port is not let go of while one App
makes way for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import Any

from aiohttp import web

from goodbot.config import HttpConfig
from goodbot.errors import ConfigError
from goodbot.web import health, names, unready
from goodbot.web.health import Said
from goodbot.web.http import Parts

logger = logging.getLogger(__name__)

LONGEST_LINE = 8190
"""Bytes of a request's first line, and of each of its headers: a platform's token is one."""
CONNECTIONS = 256
"""At once; more are closed."""
IDLE_SECONDS = 30.0
"""For a request's head, and between two requests of one connection."""
BODY_SECONDS = 30.0
_BACKLOG = 64
_LAST_CALLS = 1.0
"""Seconds for what is under way at a stop (aiohttp waits twice as long)."""
_LINGERING = 2.0
"""Seconds in which a client that still sends can read why it should not."""


class HttpServer:
    """Listens on the configured host; answers health, and whatever is mounted."""

    def __init__(self, config: HttpConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._names = names.known(config)
        self._runner: web.ServerRunner | None = None
        self._mounted: web.AppRunner | None = None
        self._under_way: set[asyncio.Task[Any]] = set()

    async def start(self, port: int, listening: socket.socket | None = None) -> None:
        """Listen, or take over what is `listening` already. Raises ConfigError when it cannot be had."""
        host = self._config.host
        server = _Server(
            self._answer, request_factory=self._request, access_log=None,
            keepalive_timeout=IDLE_SECONDS, lingering_time=_LINGERING,
            max_line_size=LONGEST_LINE, max_field_size=LONGEST_LINE,
        )  # fmt: skip
        self._runner = web.ServerRunner(server, shutdown_timeout=_LAST_CALLS)
        await self._runner.setup()
        try:
            if listening is not None:
                await web.SockSite(self._runner, listening, backlog=_BACKLOG).start()
            else:
                await web.TCPSite(self._runner, host, port, backlog=_BACKLOG).start()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"[http] cannot listen on {host} port {port} ({error.strerror or error}): "
                "set another port there, or stop what holds this one"
            ) from error
        if not names.is_loopback(host):
            logger.warning("[http] host = %s: others on the network can reach goodbot", host)

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        assert self._runner is not None  # noqa: S101  asked after `start`
        return self._runner.addresses[0][1]

    async def mount(self, application: web.Application) -> None:
        """Answer with this application what is not health; the one before is unmounted."""
        await self.unmount()
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        self._mounted = runner

    async def unmount(self) -> None:
        """Let what is under way end, then end it; from now on we are starting."""
        runner, self._mounted = self._mounted, None
        if runner is None:
            return
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=_LAST_CALLS)
        for task in list(self._under_way):
            task.cancel()
        await runner.cleanup()

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        await self.unmount()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if not names.ours(request, self._names):
            return Said(421, {"status": "this host name is not goodbot's"})
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

    def _request(
        self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        """The request as the mounted application wants it; a body that never ends is ended."""
        loop = asyncio.get_running_loop()
        if not payload.is_eof():
            loop.call_later(BODY_SECONDS, _give_up, payload)
        server = self._mounted.server if self._mounted else None
        if server is None:
            return web.BaseRequest(message, payload, protocol, writer, task, loop)
        return server.request_factory(message, payload, protocol, writer, task)


def _give_up(payload: Any) -> None:
    if not payload.is_eof() and payload.exception() is None:
        payload.set_exception(web.HTTPRequestTimeout())


class _Protocol(web.RequestHandler):
    """Answers what is no HTTP as briefly as the rest, and does not log what it was."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        manager = self._manager
        if manager is not None and len(manager.connections) > CONNECTIONS:
            with contextlib.suppress(RuntimeError):
                self.force_close()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:  # fmt: skip
        if status == 500:
            logger.error("a request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has been sent already")
        return Said(status, {"status": "error"})


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)
