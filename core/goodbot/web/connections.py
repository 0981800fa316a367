"""What one connection to us may cost, and who has to go when there are too many.

Those that have not said what they want yet are few and wait a few seconds: whoever opens a thousand
sockets and says nothing takes each other's places, not the owner's, who is heard as soon as a
request has come. Behind them go those that are between two requests, the longest idle first; then
those that have not sent their whole request. Nobody is turned away for them whose answer is under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from aiohttp import web

from goodbot.web.health import Said

logger = logging.getLogger(__name__)

CONNECTIONS = 512
"""At once."""
SILENT = 64
"""Of them, such as have not sent the head of a request."""
GRACE_SECONDS = 0.5
"""So long nobody is counted among those who say nothing, while there is room for all."""
HEAD_BYTES = 16 << 10
"""Of the head of a request, before anybody knows who sends it."""
HEAD_SECONDS = 5.0
"""From its first byte, or from the connection's begin, until the head of a request is whole."""
BODY_SECONDS = 10.0
"""From then on until its body is."""
IDLE_SECONDS = 30.0
"""Between two requests of one connection."""
_LAST_CALLS = 1.0
_SAID = {400: "That is no HTTP request.", 504: "That took too long."}
_TURNS = 3
"""Of the event loop, until a connection that the kernel has handed over is one of `Crowd.open`."""


class Crowd(web.Server):
    """Every connection of one server, as they stand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, keepalive_timeout=IDLE_SECONDS, **kwargs)
        self.open: set[Connection] = set()
        self.silent: dict[Connection, None] = {}
        """Those of whom no head has come yet, the oldest first."""
        self.closing = False
        self._left = asyncio.Event()
        self._trimming: asyncio.TimerHandle | None = None

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)

    def enter(self, newcomer: Connection) -> None:
        """Let one in, and another one go for it if need be."""
        self.open.add(newcomer)
        if self.closing:
            return newcomer.drop()
        self.silent[newcomer] = None
        if len(self.open) > CONNECTIONS:
            self._least(newcomer).drop()
        elif len(self.silent) > SILENT:
            self._trim_later()

    def leave(self, gone: Connection) -> None:
        """It is closed, its socket, too, at the end of this turn of the loop."""
        self.open.discard(gone)
        self.silent.pop(gone, None)
        self._left.set()

    def _trim_later(self) -> None:
        """A crowd that comes at once has its heads in the kernel: let it be read before it is judged."""
        if self._trimming is None:
            oldest = next(iter(self.silent))
            self._trimming = self._loop.call_at(oldest.begun + GRACE_SECONDS, self._trim)

    def _trim(self) -> None:
        """Drop the oldest of too many silent ones."""
        self._trimming = None
        latest = self._loop.time() - GRACE_SECONDS
        while len(self.silent) > SILENT:
            oldest = next(iter(self.silent))
            if oldest.begun > latest:
                return self._trim_later()
            del self.silent[oldest]
            oldest.drop()

    async def settled(self) -> None:
        """Wait until all that the kernel has handed over until now is in `open`."""
        for _ in range(_TURNS):
            await _turn()

    async def gone(self) -> None:
        """Wait until every connection is closed, the last words sent first.

        Who has not taken those after a second is cut off.
        """
        if self._trimming is not None:
            self._trimming.cancel()
        for _ in ("let them end", "cut them off"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS):
                    while self.open:
                        self._left.clear()
                        await self._left.wait()
            for connection in list(self.open):
                connection.drop()
        if self.open:
            logger.warning("%d connections did not end", len(self.open))

    def _least(self, newcomer: Connection) -> Connection:
        """Who is to go when all places are taken."""
        others = self.open - {newcomer}
        silent = next(iter(self.silent))
        if silent is not newcomer:
            return silent
        for kind in (Connection.is_idle, Connection.is_half_sent):
            if found := [one for one in others if kind(one)]:
                return min(found, key=lambda one: one.heard)
        return newcomer


class Connection(web.RequestHandler):
    """Answers what is no HTTP as briefly as the rest, and does not log what it was."""

    begun = 0.0
    """When it was opened, by the loop's clock."""
    heard = 0.0
    """When its last bytes came."""
    _head: asyncio.TimerHandle | None = None
    _unfinished = 0
    """Bytes of a head that is not whole yet."""
    _body: Any = None
    _socket: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._socket = transport
        self.begun = self.heard = self._loop.time()
        self._head = self._loop.call_later(HEAD_SECONDS, self.drop)
        self._crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        self.heard = self._loop.time()
        if self._request_count != before:
            self._crowd.silent.pop(self, None)
            return self._stop_head()
        if self._head is None and self.is_idle() and not self._upgraded:  # pyright: ignore[reportUnknownMemberType]
            self._head = self._loop.call_later(HEAD_SECONDS, self.drop)
        if self._head is not None:
            self._unfinished += len(data)
            if self._unfinished > HEAD_BYTES:
                self.drop()

    def connection_lost(self, exc: BaseException | None) -> None:
        crowd = self._crowd
        self._stop_head()
        super().connection_lost(exc)
        self._socket = None
        crowd.leave(self)

    def expect(self, payload: Any) -> None:
        """A request has begun whose body has not come yet: it has until `BODY_SECONDS`."""
        self._body = payload
        timer = self._loop.call_later(BODY_SECONDS, _give_up, payload)
        payload.on_eof(timer.cancel)

    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    def is_half_sent(self) -> bool:
        """Whether the body of its request is still to come."""
        return self._body is not None and not self._body.is_eof()

    def drop(self) -> None:
        """End it now: nothing more is heard, nothing that is still unsent is sent."""
        if isinstance(self._socket, asyncio.WriteTransport):
            self._socket.abort()
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
        said = _SAID.get(status, "goodbot failed here; its log says why.")
        type_ = "invalid_request" if status < 500 else "internal"
        program = (
            {"error": {"message": said, "type": type_}} if request.path.startswith("/v1/") else {}
        )
        return Said(status, {"status": "error", **program})

    @property
    def _crowd(self) -> Crowd:
        assert isinstance(self._manager, Crowd)  # noqa: S101  it has made us
        return self._manager

    def _stop_head(self) -> None:
        self._unfinished = 0
        if self._head is not None:
            self._head.cancel()
            self._head = None


def _give_up(payload: Any) -> None:
    if not payload.is_eof() and payload.exception() is None:
        payload.set_exception(web.HTTPRequestTimeout())


async def _turn() -> None:
    """One turn of the event loop."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done
