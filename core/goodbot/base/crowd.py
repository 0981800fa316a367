# SPDX-License-Identifier: Apache-2.0
"""All connections to a port of ours: how many there may be, and who has to go when there are too many.

Places are counted. When all are taken, those go that have not said what they want, then those that are
between two requests, the longest silent first, then those that do not send their body or do not take their
answer (`Connection.rank`). Whoever is being answered stays, and a newcomer is told to come again.

Whoever has sent a whole request hears that as it is taken from the kernel: a transport, a parser and two
tasks for it cost a good part of an answer. And whom the kernel has no room for hears nothing: it knocks again
after one second, three and seven. So a turn of the event loop takes a few that may ask, and of the others as
many as there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web

from goodbot.base.answers import JsonResponse
from goodbot.base.busy import ANSWER, BUSY, HEAD_BYTES, HEADERS, TurnedAway
from goodbot.base.connection import LOOK_SECONDS, Connection

HEALTH = 8
"""Beyond those, while nobody can go: for who asks how we are, or has not said yet what they want."""
CLOSING = 16
"""Beyond those: connections that were driven out and are not closed yet."""
WAITING = 128
"""Requests at once that have come whole, and whose answer has not begun; more are told to come again. Not
fewer where platforms call: some send nothing again."""
IDLE_SECONDS = 30.0
"""Between two requests of one connection."""
_LINGERING = 2.0
"""Seconds in which a client that still sends can read why it should not."""
LAST_CALLS = 1.0
"""Seconds for what is under way at a stop (aiohttp waits twice as long), and then to take it."""
_QUEUE = 2048
"""Connections that the kernel holds until they are taken; it may have a lower limit."""
_TAKEN = 128
"""Connections at most a turn of the event loop: those who are answered have the rest of it."""
_LET_IN = 16
"""Those of them that are let in …"""
_ASK = 8
"""… and this part of those who may wait, of such as have asked: in as many turns they are answered."""
_ITS_OWN = {errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENOPROTOOPT, errno.EOPNOTSUPP} | (
    {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, getattr(errno, "ENONET", -1)}
)
"""What Linux says of one connection that has failed before it was taken: it is no fault of ours."""
_AGAIN_SECONDS = 1.0
"""Until the next attempt where no descriptor was left."""


class Crowd:
    """Takes connections at some sockets, and has their requests answered by `handle`."""

    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        request: Callable[..., web.BaseRequest],
        sockets: Sequence[socket.socket],
        most: int,
        *,
        waiting: int | None = None,
        health: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """`request` makes one for `handle`; there are `most` places, a few more for paths of `health`.

        So many may be `waiting`, by default `WAITING`. The sockets are closed in the end, also where this
        raises OSError: they cannot be listened at.
        """
        self._loop = asyncio.get_running_loop()
        self._handle, self._request, self._sockets = handle, request, sockets
        self._most, self._health, self._spare = most, health, HEALTH if health else 0
        self._may_wait = WAITING if waiting is None else waiting
        self._server = web.Server(self._answer, request_factory=self._begins)
        own = {"access_log": None, "keepalive_timeout": IDLE_SECONDS, "lingering_time": _LINGERING}
        self._options: dict[str, Any] = own | options
        self.open: set[Connection] = set()
        """Whose sockets are open."""
        self.waiting: set[Connection] = set()
        """Those who have asked, and whose answer has not begun."""
        self.closing = False
        self._looking: asyncio.TimerHandle | None = None
        try:
            for one in sockets:
                one.setblocking(False)
                one.listen(_QUEUE)
                self._listen(one)
        except OSError:
            self._let_go()
            raise

    @property
    def port(self) -> int:
        """The port of the first socket."""
        return self._sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more, answer what is under way, and wait until every connection is closed.

        Who has not taken the last words after a second is cut off.
        """
        self.closing = True
        self._let_go()
        self._server.pre_shutdown()
        await self._server.shutdown(LAST_CALLS)
        for _ in ("let them end", "cut them off"):
            if self.open:
                await asyncio.wait([one.closed for one in self.open], timeout=LAST_CALLS)
            for connection in [*self.open]:
                connection.drop()
        if self._looking is not None:
            self._looking.cancel()

    def _let_go(self) -> None:
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()

    # Who is taken, and who is told to come again.

    def _listen(self, listening: socket.socket) -> None:
        if not self.closing:
            self._loop.add_reader(listening, self._take, listening)

    def _take(self, listening: socket.socket) -> None:
        free = self._free()
        full: set[bool] = set()
        """For whom there is no place: those who ask, those who do not."""
        taken = asking = 0
        for _ in range(_TAKEN):
            enough = taken >= _LET_IN or asking * _ASK >= self._may_wait
            if enough or len(self.open) >= self._most + self._spare + CLOSING:
                return
            try:
                one, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _ITS_OWN:
                    continue
                return self._wait(listening, error)
            one.setblocking(False)
            asks = self._asks(one)
            if asks in full or (asks and free <= 0) or (newcomer := self.enter(asks)) is None:
                full.add(asks)
                _refuse(one)
                continue
            newcomer.coming = self._loop.create_task(self._enters(one, newcomer))
            free -= asks
            asking += asks
            taken += 1

    def _asks(self, one: socket.socket) -> bool:
        """Whether it has sent a whole request already, and that is no supervisor's."""
        with contextlib.suppress(OSError):
            # Empty lines before a request are skipped: who sends nothing else has asked nothing.
            head, end, body = one.recv(HEAD_BYTES, socket.MSG_PEEK).lstrip(b"\r\n").partition(b"\r\n\r\n")
            path = head.partition(b" ")[2]
            own = any(path.startswith(name.encode()) for name in self._health)
            return bool(end) and not own and len(body) >= _length(head)
        return False

    async def _enters(self, one: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, one)
        except OSError:  # it has gone already
            one.close()
            self.leave(connection)

    def _wait(self, listening: socket.socket, error: OSError) -> None:
        """Without a descriptor each attempt fails: one a second, and it is told, as asyncio's servers do."""
        self._loop.remove_reader(listening)
        self._loop.call_later(_AGAIN_SECONDS, self._listen, listening)
        self._loop.call_exception_handler(
            {"message": "no connection can be taken", "exception": error, "socket": listening}
        )

    # Who is there.

    def enter(self, asks: bool) -> Connection | None:
        """Let one in, if there is a place. `asks`: it has said what it wants, and that is not how we are.

        Its place is taken from now on, and also that among those who wait, where it `asks`.
        """
        if (spare := self._place(asks)) is None:
            return None
        if self._looking is None:
            self._looks_soon()
        newcomer = Connection(self, self._server, spare=spare, **self._options)
        self.open.add(newcomer)
        if asks:
            self.waiting.add(newcomer)
        return newcomer

    def _place(self, asks: bool) -> bool | None:
        """Whether there is but a spare place for one more, None: not even that. Another goes if need be."""
        if len(self.open) < self._most:
            return False
        now = self._loop.time()
        for spare, places in ((False, self._most), (True, 0 if asks else self._spare)):
            there = [one for one in self.open if one.spare is spare and not one.dropped]
            if len(there) < places:
                return spare
            ranked = {one: (rank, one.heard) for one in there if (rank := one.rank(now)) is not None}
            if places and ranked:
                min(ranked, key=ranked.__getitem__).drop()
                return spare
        return None

    def leave(self, gone: Connection) -> None:
        """Its socket is closed at the end of this turn of the loop."""
        self.open.discard(gone)
        self.waiting.discard(gone)
        if not gone.closed.done():
            gone.closed.set_result(None)

    def _looks_soon(self) -> None:
        due = self._loop.time() + LOOK_SECONDS
        self._looking = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        """End those whose time is over."""
        now, self._looking = self._loop.time(), None
        for one in [*self.open]:
            one.look(now, now - due)
        if self.open:
            self._looks_soon()

    # What is asked.

    def _free(self) -> int:
        """How many more may wait for an answer; who has not sent all yet waits for none."""
        return self._may_wait - sum(not one.is_half_sent() for one in self.waiting)

    def _begins(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        protocol.begins(payload)
        return self._request(message, payload, protocol, writer, task)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)  # noqa: S101  we have made it
        may = connection in self.waiting or self._free() > 0
        if request.path not in self._health and not (may and self._settles(connection)):
            TurnedAway.total += 1
            connection.ends()
            return JsonResponse(503, BUSY, HEADERS)
        self.waiting.add(connection)
        try:
            if _size_of_head(request) > HEAD_BYTES:  # of all lines together aiohttp has no limit
                return JsonResponse(431, {"status": f"the headers are longer than {HEAD_BYTES} bytes in all"})
            return await self._handle(request)
        finally:
            self.waiting.discard(connection)
            connection.ends()

    def _settles(self, one: Connection) -> bool:
        """Whether somebody who asks for more than how we are has a place for that, or gets one now."""
        one.spare = one.spare and self._place(asks=True) is None
        return not one.spare


def _size_of_head(request: web.BaseRequest) -> int:
    return len(request.raw_path) + sum(len(name) + len(value) + 4 for name, value in request.raw_headers)


def _length(head: bytes) -> float:
    """Bytes of the body behind a head; infinite where nobody knows beforehand."""
    head = head.lower()
    said = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()[:9]
    told = (not said or said.isdigit()) and b"\r\ntransfer-encoding:" not in head
    return int(said or 0) if told else math.inf


def _refuse(one: socket.socket) -> None:
    """Say it, and end. What has come is taken first: else the kernel tells of an error, and not of that.

    Nothing more is to come: aiohttp refuses those who have not sent all of a request, and waits for the rest.
    """
    TurnedAway.total += 1
    with one, contextlib.suppress(OSError):
        one.send(ANSWER)
        one.recv(HEAD_BYTES)
