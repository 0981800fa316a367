# SPDX-License-Identifier: Apache-2.0
"""What one connection to a port of ours may cost.

aiohttp speaks HTTP; each of its protocols lies in a `Connection` of ours, which sees what asyncio sees:
bytes that come, an answer that is not taken.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web

from goodbot.base.answers import Handler
from goodbot.base.busy import HEAD_BYTES

if TYPE_CHECKING:
    from goodbot.base.crowd import Crowd

HEAD_SECONDS = 5.0
"""From its first byte, or from the connection's begin, until the head of a request is whole."""
BODY_SECONDS = 10.0
"""From then on until its body is."""
TAKING_SECONDS = 10.0
"""An answer of which nothing was taken for so long ends its connection."""
LOOK_SECONDS = 0.25
"""Between two looks at whose time is over."""
_SLOW_SECONDS = 1.0


class Connection(asyncio.Protocol):
    """One of a crowd, around aiohttp's own protocol."""

    def __init__(self, crowd: Crowd, http: Handler, *, spare: bool) -> None:
        self.crowd = crowd
        self.spare = spare
        """Whether it has one of the places beyond the usual ones."""
        self._http = http
        http.connection = self
        self._transport: asyncio.Transport | None = None
        self.coming: asyncio.Task[None] | None = None
        """What brings it to its socket."""
        self.dropped = False
        self._answering = False
        """Whether a request of it is with us."""
        self._body: Any = None
        self._loop = asyncio.get_running_loop()
        self.closed = self._loop.create_future()
        now = self._loop.time()
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
        self._http.connection_made(transport)
        if self.dropped or self.crowd.closing:
            self.drop()

    def data_received(self, data: bytes) -> None:
        if self.dropped:
            return
        self.heard = self._loop.time()
        if not self._answering and not self.is_half_sent():
            if self._unfinished > HEAD_BYTES:
                return self.drop()
            self._unfinished += len(data)
            if self._head_since is None:
                self._head_since = self.heard
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        return self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._taken = self._loop.time()
        self._http.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._http.connection_lost(exc)
        self._transport = None
        self.crowd.leave(self)

    def begins(self, body: Any) -> None:
        """A head is whole; its body, where there is one, has until `BODY_SECONDS`."""
        self._answering, self._body = True, body
        self._head_since, self._unfinished = None, 0
        self._body_since = self._loop.time()

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


def _give_up(payload: Any) -> None:
    if not payload.is_eof() and payload.exception() is None:
        payload.set_exception(web.HTTPRequestTimeout())
