# SPDX-License-Identifier: Apache-2.0
"""Takes connections from the kernel. Who cannot be answered is told so there and then.

A transport, a parser and two tasks for somebody who is told to come again cost a good part of an answer.
And whom the kernel has no room for hears nothing: it knocks again after one second, three and seven. So a
turn of the event loop takes a few connections that may ask, and of the others as many as there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Sequence

from goodbot.base.busy import ANSWER, READ_SECONDS, REFUSED
from goodbot.daemon.http import health
from goodbot.daemon.http.connections import HEAD_BYTES, Connection, Crowd

_QUEUE = 2048
"""Connections that the kernel holds until they are taken; it may have a lower limit."""
_TAKEN = 128
"""Connections at most a turn of the event loop: those who are answered have the rest of it."""
_LET_IN = 16
"""Those of them that may ask."""
_AT_ONCE = 1 << 16
_ITS_OWN = frozenset(
    getattr(errno, name)
    for name in (
        "ECONNABORTED",
        "EPROTO",
        "EPERM",
        "ENOPROTOOPT",
        "EOPNOTSUPP",
        "ENETDOWN",
        "ENETUNREACH",
        "EHOSTDOWN",
        "EHOSTUNREACH",
        "ENONET",
    )
    if hasattr(errno, name)
)
"""What Linux says of one connection that has failed before it was taken: it is no fault of ours."""
_AGAIN_SECONDS = 1.0
"""Until the next attempt where no descriptor was left."""


class ListeningSockets:
    """The listening sockets of one crowd."""

    def __init__(self, crowd: Crowd, sockets: Sequence[socket.socket]) -> None:
        self._loop = asyncio.get_running_loop()
        self._crowd = crowd
        self._sockets = sockets
        self._coming: set[asyncio.Task[None]] = set()
        """Connections on their way to their protocol."""
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        """Who was told to come again, the oldest first, with what ends it."""
        self._again: dict[socket.socket, asyncio.TimerHandle] = {}
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
        """The port of the first."""
        return self._sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more, and wait until those who were taken have their protocol."""
        self._let_go()
        for one in [*self._refused]:
            self._hang_up(one)
        if self._coming:
            await asyncio.wait(self._coming)

    def _let_go(self) -> None:
        for timer in self._again.values():
            timer.cancel()
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()

    def _listen(self, listening: socket.socket) -> None:
        self._loop.add_reader(listening, self._take, listening)

    def _take(self, listening: socket.socket) -> None:
        free = self._crowd.free()
        full: set[bool] = set()
        """For whom there is no place: those who ask, those who do not."""
        taken = 0
        for _ in range(_TAKEN):
            if taken >= _LET_IN or self._crowd.is_overfull():
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
            asks = _asks(one)
            busy = asks and free <= 0
            if not busy and asks not in full and not self._crowd.makes_room(asks):
                full.add(asks)
            if busy or asks in full:
                self._refuse(one)
                continue
            coming = self._loop.create_task(self._enters(one, self._crowd.enter(asks)))
            self._coming.add(coming)
            coming.add_done_callback(self._coming.discard)
            free -= asks
            taken += 1

    async def _enters(self, one: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, one)
        except OSError:  # it has gone already
            one.close()
            self._crowd.leave(connection)

    def _refuse(self, one: socket.socket) -> None:
        """Say it, and take what still comes: else the kernel tells of an error, and not of what was said."""
        self._crowd.turned_away += 1
        with contextlib.suppress(OSError):
            one.send(ANSWER)
            one.shutdown(socket.SHUT_WR)
        if len(self._refused) >= REFUSED:
            self._hang_up(next(iter(self._refused)))
        self._refused[one] = self._loop.call_later(READ_SECONDS, self._hang_up, one)
        self._loop.add_reader(one, self._pour_out, one)

    def _pour_out(self, one: socket.socket) -> None:
        try:
            if one.recv(_AT_ONCE):
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        self._hang_up(one)

    def _hang_up(self, one: socket.socket) -> None:
        self._refused.pop(one).cancel()
        self._loop.remove_reader(one)
        with contextlib.suppress(OSError):
            one.recv(_AT_ONCE)
        one.close()

    def _wait(self, listening: socket.socket, error: OSError) -> None:
        """Without a descriptor each attempt fails: one a second, and it is told, as asyncio's servers do."""
        self._loop.remove_reader(listening)
        self._again[listening] = self._loop.call_later(_AGAIN_SECONDS, self._listen, listening)
        self._loop.call_exception_handler(
            {"message": "no connection can be taken", "exception": error, "socket": listening}
        )


def _asks(one: socket.socket) -> bool:
    """Whether it has sent the head of a request already, and that is no supervisor's."""
    with contextlib.suppress(OSError):
        # Empty lines before a request are skipped: who sends nothing else has asked nothing.
        begun = one.recv(HEAD_BYTES, socket.MSG_PEEK).lstrip(b"\r\n")
        return b"\r\n\r\n" in begun and not begun.startswith(health.BEGINNINGS)
    return False
