"""Where a platform calls us by HTTP: one path, no larger than it must be. Import it only in such a mode.

We listen on the loopback unless told otherwise; a reverse proxy with a certificate stands in front.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from goodbot.base.errors import FatalConnectorError

_LAST_CALLS = 1.0
"""Seconds for what is under way at a stop (aiohttp waits twice as long): platforms call again."""
BODY_SECONDS = 10.0
"""Until all of a call has come."""
IDLE_SECONDS = 30.0
"""Between two calls of one connection, and until the head of one is whole (aiohttp waits an hour)."""
_LARGEST = 1 << 20
"""Bytes of a call; an event is a few thousand."""


class Listener:
    """Answers POST requests to one path by `handle`."""

    def __init__(
        self, handle: Callable[[web.Request], Awaitable[web.Response]], *, path: str, host: str,
        port: int, setting: str,
    ) -> None:  # fmt: skip
        """`setting` is what the owner changes when the port is taken: `webhook_port`."""
        self._handle, self._path, self._host, self._port = handle, path, host, port
        self._setting = setting
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises FatalConnectorError when the address cannot be had."""
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_post(self._path, self._handle)
        application.on_response_prepare.append(_unnamed)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=_LAST_CALLS, lingering_time=_LAST_CALLS,
            keepalive_timeout=IDLE_SECONDS,
        )  # fmt: skip
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self.stop()
            raise FatalConnectorError(
                f"goodbot cannot listen on {self._host} port {self._port} "
                f"({error.strerror or error}): set another {self._setting}"
            ) from error

    async def stop(self) -> None:
        """Answer what is under way and stop listening; idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        assert self._runner is not None  # noqa: S101  asked after `start`
        return self._runner.addresses[0][1]


async def whole(request: web.Request) -> bytes:
    """All of a call: anybody may begin one. Raises web.HTTPException."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except ConnectionError:  # it has gone away, and is no fault of ours
        raise web.HTTPBadRequest from None


async def _unnamed(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)  # which versions we run is nobody's business
