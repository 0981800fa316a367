# SPDX-License-Identifier: Apache-2.0
"""Where a platform calls us by HTTP: one path, no larger than it must be. Import it only in such a mode.

We listen on the loopback unless told otherwise; a reverse proxy with a certificate stands in front.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from goodbot.base.crowd import Crowd
from goodbot.base.descriptors import bound
from goodbot.base.errors import FatalConnectorError

CONNECTIONS = 128
"""At once."""
_LARGEST = 1 << 20
"""Bytes of a call; an event is a few thousand."""


class Listener:
    """Answers POST requests to one path by `handle`."""

    def __init__(
        self,
        handle: Callable[[web.Request], Awaitable[web.Response]],
        *,
        path: str,
        host: str,
        port: int,
        setting: str,
    ) -> None:
        """`setting` is what the owner changes when the port is taken: `webhook_port`."""
        self._handle, self._path, self._host, self._port = handle, path, host, port
        self._setting = setting
        self._runner: web.AppRunner | None = None
        self._crowd: Crowd | None = None

    async def start(self) -> None:
        """Listen. Raises FatalConnectorError when the address cannot be had."""
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_post(self._path, self._handle)
        application.on_response_prepare.append(_unnamed)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101  it is set up
        try:
            sockets = await bound(self._host, self._port)
            self._crowd = Crowd(server.request_handler, server.request_factory, sockets, CONNECTIONS)
        except OSError as error:
            await self.stop()
            raise FatalConnectorError(
                f"goodbot cannot listen on {self._host} port {self._port} "
                f"({error.strerror or error}): set another {self._setting}"
            ) from error

    async def stop(self) -> None:
        """Answer what is under way and stop listening; idempotent."""
        crowd, self._crowd = self._crowd, None
        runner, self._runner = self._runner, None
        if crowd is not None:
            await crowd.close()
        if runner is not None:
            await runner.cleanup()

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        assert self._crowd is not None  # noqa: S101  asked after `start`
        return self._crowd.port


async def _unnamed(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)  # which versions we run is nobody's business
