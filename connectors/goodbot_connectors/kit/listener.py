# SPDX-License-Identifier: Apache-2.0
"""Where a platform calls us by HTTP: one path, no larger than it must be. Import it only in such a mode.

We listen on the loopback unless told otherwise; a reverse proxy with a certificate stands in front.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from goodbot.base.busy import TAKING_SECONDS, TurnedAway
from goodbot.base.descriptors import ONE_A_TURN, queue
from goodbot.base.errors import FatalConnectorError

_LAST_CALLS = 1.0
"""Seconds for what is under way at a stop (aiohttp waits twice as long): platforms call again."""
BODY_SECONDS = 10.0
"""Until all of a call has come."""
IDLE_SECONDS = 30.0
"""Between two calls of one connection, and until the head of one is whole (aiohttp waits an hour)."""
CONNECTIONS = 128
"""At once. A newcomer takes the place of who has said nothing for the longest time."""
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
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Transport, _Connection] = {}
        self._refused = TurnedAway()

    async def start(self) -> None:
        """Listen. Raises FatalConnectorError when the address cannot be had."""
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_post(self._path, self._answer)
        application.on_response_prepare.append(_unnamed)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=_LAST_CALLS,
            lingering_time=_LAST_CALLS,
            keepalive_timeout=IDLE_SECONDS,
        )
        await self._runner.setup()
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self._connection, self._host, self._port, backlog=ONE_A_TURN
            )
            queue(self._server)
        except OSError as error:
            await self.stop()
            raise FatalConnectorError(
                f"goodbot cannot listen on {self._host} port {self._port} "
                f"({error.strerror or error}): set another {self._setting}"
            ) from error

    async def stop(self) -> None:
        """Answer what is under way and stop listening; idempotent."""
        runner, self._runner = self._runner, None
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if runner is not None:
            await runner.cleanup()

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        assert self._server is not None  # noqa: S101  asked after `start`
        return self._server.sockets[0].getsockname()[1]

    def _connection(self) -> asyncio.Protocol:
        assert self._runner is not None  # noqa: S101  we listen
        assert self._runner.server is not None  # noqa: S101  and it is set up
        return _Connection(self._runner.server(), self._open, self._refused)

    async def _answer(self, request: web.Request) -> web.Response:
        place = self._open.get(request.transport) if request.transport else None
        if place is None:
            return await self._handle(request)
        place.asked = request
        try:
            return await self._handle(request)
        finally:
            place.asked = None


class _Connection(asyncio.Protocol):
    """One of them, around aiohttp's own protocol."""

    def __init__(
        self, http: asyncio.Protocol, there: dict[asyncio.Transport, _Connection], refused: TurnedAway
    ) -> None:
        self._http, self._open, self._refused = http, there, refused
        self._there = False
        self._transport: asyncio.Transport | None = None
        self.asked: web.Request | None = None
        """What it is being answered."""
        self.heard = 0.0
        """When its last bytes came, by the loop's clock."""
        self._untaken: asyncio.TimerHandle | None = None
        """What ends it if its answer is not taken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a stream's
        self._transport, self.heard = transport, asyncio.get_running_loop().time()
        self._there = self._makes_room()
        if not self._there:
            return self._refused.add(transport)
        self._open[transport] = self
        transport.set_write_buffer_limits(0)  # so that we hear of whatever is not taken
        self._http.connection_made(transport)

    def _makes_room(self) -> bool:
        """Whoever has sent all of a call keeps its place until it is answered."""
        heard = {t: one.heard for t, one in self._open.items() if not one.waits()}
        if len(self._open) >= CONNECTIONS and heard:
            victim = min(heard, key=heard.__getitem__)
            del self._open[victim]  # its place is free at once: it is not chosen twice
            victim.abort()
        return len(self._open) < CONNECTIONS

    def waits(self) -> bool:
        """Whether it has sent all of a call."""
        return self.asked is not None and self.asked.content.is_eof()

    def data_received(self, data: bytes) -> None:
        if self._there:
            self.heard = asyncio.get_running_loop().time()
            self._http.data_received(data)

    def eof_received(self) -> bool | None:
        return self._http.eof_received() if self._there else None  # whoever was refused has read it

    def pause_writing(self) -> None:
        if self._there and self._transport is not None:
            loop = asyncio.get_running_loop()
            self._untaken = loop.call_later(TAKING_SECONDS, self._transport.abort)
            self._http.pause_writing()

    def resume_writing(self) -> None:
        self._takes()
        if self._there:
            self._http.resume_writing()

    def _takes(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._takes()
        if self._transport is not None:
            self._open.pop(self._transport, None)
            self._refused.gone(self._transport)
        if self._there:
            self._http.connection_lost(exc)


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
