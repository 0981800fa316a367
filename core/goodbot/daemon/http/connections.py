# SPDX-License-Identifier: Apache-2.0
"""What one connection to us may cost, and who has to go when there are too many.

aiohttp speaks HTTP; each of its protocols lies in a `Connection` of ours, which sees what asyncio sees:
bytes that come, an answer that is not taken. Places are counted. When all are taken, those go that have
not said what they want, then those that are between two requests, the longest silent first, then those
that do not send their body or do not take their answer. Whoever is being answered stays, and a newcomer
is told to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from aiohttp import web

from goodbot.base.busy import TAKING_SECONDS
from goodbot.daemon.http.protocols import Handler, ProtocolFactory

logger = logging.getLogger(__name__)

CONNECTIONS = 512
"""At once, on the port."""
AT_HOME = 128
"""At once, on the Unix socket: nobody else takes these."""
HEALTH = 8
"""Beyond those, while nobody can go: for who asks how we are, or has not said yet what they want."""
CLOSING = 16
"""Beyond those: connections that were driven out and are not closed yet."""
WAITING = 128
"""Requests at once that have come whole, and whose answer has not begun; more are told to come again."""
HEAD_BYTES = 16 << 10
"""Of the head of a request, before anybody knows who sends it."""
HEAD_SECONDS = 5.0
"""From its first byte, or from the connection's begin, until the head of a request is whole."""
BODY_SECONDS = 10.0
"""From then on until its body is."""
_LOOK_SECONDS = 0.25
_LAST_CALLS = 1.0
_SLOW_SECONDS = 1.0


class Crowd:
    """All connections of one place that is listened at."""

    def __init__(self, server: ProtocolFactory, most: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._most = most
        self.open: set[Connection] = set()
        """Whose sockets are open."""
        self.waiting: set[Connection] = set()
        """Those who have asked, and whose answer has not begun."""
        self.turned_away = 0
        """Connections and requests for which there was no room."""
        self.closing = False
        self._left = asyncio.Event()
        self._looking: asyncio.TimerHandle | None = None

    def free(self) -> int:
        """How many more may wait for an answer; who has not sent all yet waits for none."""
        return WAITING - sum(not one.is_half_sent() for one in self.waiting)

    def is_overfull(self) -> bool:
        """Whether some that were driven out have to be closed before anybody is taken."""
        return len(self.open) >= self._most + HEALTH + CLOSING

    def makes_room(self, asks: bool) -> bool:
        """Whether there is a place for one more; another one goes for it if need be.

        `asks`: it has said what it wants, and that is not how we are.
        """
        if len(self.open) < self._most or self._has_room(spare=False):
            return True
        return not asks and self._has_room(spare=True)

    def _has_room(self, *, spare: bool) -> bool:
        there = self._there(spare=spare)
        if len(there) < (HEALTH if spare else self._most):
            return True
        now = self._loop.time()
        ranked = {one: (rank, one.heard) for one in there if (rank := one.rank(now)) is not None}
        if ranked:
            min(ranked, key=ranked.__getitem__).drop()
        return bool(ranked)

    def _there(self, *, spare: bool) -> list[Connection]:
        return [one for one in self.open if one.spare is spare and not one.dropped]

    def settles(self, one: Connection) -> bool:
        """Whether somebody who asks for more than how we are has a place for that, or gets one now."""
        one.spare = one.spare and not self._has_room(spare=False)
        return not one.spare

    def enter(self, asks: bool) -> Connection:
        """Let one in. Its place is taken from now on, and also that among those who wait, where it `asks`."""
        if self._looking is None:
            self._looking = self._loop.call_later(_LOOK_SECONDS, self._look)
        newcomer = Connection(self, self._server())
        newcomer.spare = len(self._there(spare=False)) >= self._most
        self.open.add(newcomer)
        if asks:
            self.waiting.add(newcomer)
        return newcomer

    def leave(self, gone: Connection) -> None:
        """Its socket is closed at the end of this turn of the loop."""
        self.open.discard(gone)
        self.waiting.discard(gone)
        self._left.set()

    def _look(self) -> None:
        """End those whose time is over."""
        self._looking = None
        now = self._loop.time()
        for one in list(self.open):
            if one.is_over(now):
                one.drop()
        if self.open:
            self._looking = self._loop.call_later(_LOOK_SECONDS, self._look)

    async def gone(self) -> None:
        """Wait until every connection is closed, the last words sent first.

        Who has not taken those after a second is cut off.
        """
        for _ in ("let them end", "cut them off"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS):
                    while self.open:
                        self._left.clear()
                        await self._left.wait()
            for connection in list(self.open):
                connection.drop()
        if self._looking is not None:
            self._looking.cancel()
        if self.open:
            logger.warning("%d connections did not end", len(self.open))


class Connection(asyncio.Protocol):
    """One of them, around aiohttp's own protocol."""

    def __init__(self, crowd: Crowd, http: Handler) -> None:
        self.crowd = crowd
        self._http = http
        http.connection = self
        self._transport: asyncio.Transport | None = None
        self.dropped = False
        self.spare = False
        """Whether it has one of the places beyond the usual ones (`HEALTH`)."""
        self._answering = False
        """Whether a request of it is with us."""
        self._body: Any = None
        self._late: asyncio.TimerHandle | None = None
        now = asyncio.get_running_loop().time()
        self._head_since: float | None = now
        """Since when a head is awaited."""
        self._unfinished = 0
        """Bytes of it."""
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
        self.heard = asyncio.get_running_loop().time()
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
        self._taken = asyncio.get_running_loop().time()
        self._http.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._http.connection_lost(exc)
        self._transport = None
        if self._late is not None:
            self._late.cancel()  # it would keep what has come of the body until then
        self.crowd.leave(self)

    def begins(self, body: Any) -> None:
        """A head is whole; its body, where there is one, has until `BODY_SECONDS`."""
        self._answering, self._body = True, body
        self._head_since, self._unfinished = None, 0
        if not body.is_eof():
            self._late = asyncio.get_running_loop().call_later(BODY_SECONDS, _give_up, body)
            body.on_eof(self._late.cancel)

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

    def is_over(self, now: float) -> bool:
        """Whether it has had its time: for a head, or for taking an answer."""
        if self._transport is None:
            return False
        unsent = self._transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._taken = now
        self._unsent = unsent
        if unsent and self._head_since is not None:
            self._head_since = now  # it asks again before it has taken the answer before
        large = self._unfinished > HEAD_BYTES and not unsent and now - self.heard > _LOOK_SECONDS
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
