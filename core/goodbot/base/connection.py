# SPDX-License-Identifier: Apache-2.0
"""What one connection to a port of ours may cost.

aiohttp speaks HTTP; a `Connection` is its protocol and sees what asyncio tells it: bytes that come, an answer
that is not taken. It uses none of the names that aiohttp keeps to itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot.base.answers import JsonResponse
from goodbot.base.busy import HEAD_BYTES

if TYPE_CHECKING:
    from goodbot.base.crowd import Crowd

logger = logging.getLogger(__name__)

HEAD_SECONDS = 5.0
"""From its first byte, or from the connection's begin, until the head of a request is whole."""
BODY_SECONDS = 10.0
"""From then on until its body is."""
TAKING_SECONDS = 10.0
"""An answer of which nothing was taken for so long ends its connection."""
LOOK_SECONDS = 0.25
"""Between two looks at whose time is over."""
_SLOW_SECONDS = 1.0
_SAID = {400: "That is no HTTP request.", 504: "That took too long."}


def takes_its_time(request: web.BaseRequest) -> None:
    """This one waits for a model, say, and whoever answers it counts those who do: so its place among the
    many whose answer comes at once (`Crowd.waiting`) is free for another."""
    if isinstance(request.protocol, Connection):
        request.protocol.crowd.waiting.discard(request.protocol)


class Connection(web.RequestHandler):
    """One of a crowd. It answers what is no HTTP as briefly as the rest, and does not log what it was."""

    def __init__(self, crowd: Crowd, server: web.Server, *, spare: bool, **options: Any) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, **options)
        self.crowd = crowd
        self.spare = spare
        """Whether it has one of the places beyond the usual ones."""
        self._transport: asyncio.Transport | None = None
        """Until it is closed: aiohttp lets go of it before what is unsent has been taken."""
        self.coming: asyncio.Task[None] | None = None
        """What brings it to its socket."""
        self.dropped = False
        self._answering = False
        """Whether a request of it is with us."""
        self._body: Any = None
        self._time = loop.time
        self.closed = loop.create_future()
        now = self._time()
        self._head_since: float | None = now
        """Since when a head is awaited."""
        self._unfinished = 0
        """Bytes of it."""
        self._body_since = now
        self.heard = now
        """When its last bytes came, by the loop's clock."""
        self._taken, self._unsent = now, 0
        """When bytes of an answer were last seen to be taken, and how many were left then."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  a stream's
        self._transport = transport
        super().connection_made(transport)
        if self.dropped or self.crowd.closing:
            self.drop()

    def data_received(self, data: bytes) -> None:
        if self.dropped:
            return
        if data:  # aiohttp calls it without any where it goes on with what it has
            self.heard = self._time()
            if not self._answering and not self.is_half_sent():
                if self._unfinished > HEAD_BYTES:
                    return self.drop()
                self._unfinished += len(data)
                if self._head_since is None:
                    self._head_since = self.heard
        super().data_received(data)

    def resume_writing(self) -> None:
        self._taken = self._time()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        try:
            super().connection_lost(exc)
        finally:  # else its place would be taken for ever
            self._transport = None
            self.crowd.leave(self)

    def begins(self, body: Any) -> None:
        """A head is whole; its body, where there is one, has until `BODY_SECONDS`."""
        self._answering, self._body = True, body
        self._head_since, self._unfinished = None, 0
        self._body_since = self._time()

    def ends(self) -> None:
        """Its request has been answered, but for what it has not taken yet."""
        self._answering = False

    def is_silent(self) -> bool:
        """Whether it has not said yet what it wants."""
        return self._head_since is not None

    def is_half_sent(self) -> bool:
        """Whether the body of its request is still to come."""
        return self._body is not None and not self._body.is_eof()

    def rank(self, now: float) -> int | None:
        """How soon it has to go when there is no room, the least first; None: it stays."""
        if self._transport is not None and self._transport.get_write_buffer_size():
            return 3 if now - self._taken > _SLOW_SECONDS else None
        if self.is_half_sent():
            return 2
        if self._answering or self in self.crowd.waiting:
            return None
        return 0 if self.is_silent() else 1

    def look(self, now: float, late: float) -> None:
        """End it, or the wait for its body, if it has had its time.

        Seconds in which we were `late`, and heard nobody, are not counted.
        """
        self.heard, self._taken, self._body_since = (
            min(since + late, now) for since in (self.heard, self._taken, self._body_since)
        )
        if self._head_since is not None:
            self._head_since = min(self._head_since + late, now)
        if self.is_half_sent() and now - self._body_since > BODY_SECONDS:
            _give_up(self._body)
        if self._is_over(now):
            self.drop()

    def _is_over(self, now: float) -> bool:
        """Whether it has had its time: for a head, or for taking an answer."""
        if self._transport is None:
            return False
        unsent = self._transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._taken = now
        self._unsent = unsent
        if unsent and self._head_since is not None:
            self._head_since = now  # it asks again before it has taken the answer before
        large = self._unfinished > HEAD_BYTES and not unsent and now - self.heard > LOOK_SECONDS
        late = self._head_since is not None and (large or now - self._head_since > HEAD_SECONDS)
        return late or now - self._taken > TAKING_SECONDS

    def drop(self) -> None:
        """End it now: nothing more is heard, nothing that is still unsent is sent."""
        self.dropped = True
        if self._transport is not None:
            self._transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, web.RequestPayloadError):
            status = 400  # a body that says of itself what it is not
        if status == 500 and not (self.transport is None and isinstance(exc, ConnectionError)):
            logger.error("a request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has been sent already")
        said = _SAID.get(status, "goodbot failed here; its log says why.")
        type_ = "invalid_request" if status < 500 else "internal"
        program = {"error": {"message": said, "type": type_}} if request.path.startswith("/v1/") else {}
        return JsonResponse(status, {"status": "error", **program})

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """A body that fails is no fault of ours: aiohttp meets that once more after the answer."""
        if not isinstance(kw.get("exc_info"), web.HTTPRequestTimeout | web.RequestPayloadError):
            super().log_exception(*args, **kw)


def _give_up(payload: Any) -> None:
    if not payload.is_eof() and payload.exception() is None:
        payload.set_exception(web.HTTPRequestTimeout())
