# SPDX-License-Identifier: Apache-2.0
"""Requests that leave at their moment, whether or not those before are answered: a process of its own.

It does without asyncio: at ten times what goodbot can do the load would be the slower one of both.
"""

from __future__ import annotations

import dataclasses
import errno
import gc
import os
import select
import socket
import time
from collections.abc import Sequence

GIVES_UP_SECONDS = 30.0
_AT_ONCE = 64
"""That leave before what has come is looked at again."""
_BIND_ADDRESS_NO_PORT = 24
"""Linux: the port is chosen at the connection."""


@dataclasses.dataclass(slots=True)
class Asked:
    """One request. Times in seconds, by one clock."""

    due: float
    left: float
    kept: bool
    """Whether on a connection that was there already."""
    told: str = ""
    """The status, or what came in place of an answer."""
    over: float = 0.0


class _Connection:
    def __init__(self, own: socket.socket, asked: Asked, request: bytes) -> None:
        self.own, self.asked, self.request = own, asked, request
        self.connected = False
        self.heard = b""


def load(port: int, requests: Sequence[bytes], rate: float, seconds: float) -> list[Asked]:
    """So many of these requests a second, each on a connection that is free or else on a new one."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    gc.disable()
    return _Load(port, requests).run(rate, int(rate * seconds))


class _Load:
    def __init__(self, port: int, requests: Sequence[bytes]) -> None:
        self._port, self._requests = port, requests
        self._poll = select.epoll()
        self._open: dict[int, _Connection] = {}
        self._free: list[_Connection] = []
        self._all: list[Asked] = []
        self._waiting = 0

    def run(self, rate: float, count: int) -> list[Asked]:
        began, looked = time.monotonic(), 0.0
        while len(self._all) < count or self._waiting:
            now = time.monotonic()
            for n in range(len(self._all), min(count, int((now - began) * rate), len(self._all) + _AT_ONCE)):
                self._ask(began + n / rate, self._requests[n % len(self._requests)])
            for handle, _ in self._poll.poll(0.0 if len(self._all) < count else 0.01):
                if handle in self._open:
                    self._hear(self._open[handle])
            if now > looked + 0.2:
                looked = now
                for one in list(self._open.values()):
                    if not one.asked.told and now - one.asked.due > GIVES_UP_SECONDS:
                        self._end(one, "no answer in 30 s")
        for one in list(self._open.values()):
            self._end(one, "")
        self._poll.close()
        return self._all

    def _ask(self, due: float, request: bytes) -> None:
        asked = Asked(due, time.monotonic(), kept=False)
        self._all.append(asked)
        self._waiting += 1
        while self._free:
            one = self._free.pop()
            if one.own.fileno() >= 0:
                asked.kept, one.asked, one.request, one.heard = True, asked, request, b""
                return self._send(one)
        try:
            own = socket.socket()
        except OSError as error:
            return self._over(asked, type(error).__name__)
        own.setblocking(False)
        # One address has 28,000 ports, and the more of them are taken the longer the kernel looks for one.
        own.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
        own.bind((f"127.0.0.{1 + len(self._all) % 100}", 0))
        failed = own.connect_ex(("127.0.0.1", self._port))
        one = self._open[own.fileno()] = _Connection(own, asked, request)
        self._poll.register(own, select.EPOLLIN | select.EPOLLOUT)
        if failed not in (0, errno.EINPROGRESS):
            self._end(one, errno.errorcode[failed])

    def _send(self, one: _Connection) -> None:
        try:
            one.own.send(one.request)
        except OSError as error:
            self._end(one, type(error).__name__)

    def _hear(self, one: _Connection) -> None:
        if not one.connected:
            if failed := one.own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return self._end(one, errno.errorcode[failed])
            one.connected = True
            self._poll.modify(one.own, select.EPOLLIN)
            return self._send(one)
        try:
            came = one.own.recv(1 << 16)
        except OSError as error:
            return self._end(one, type(error).__name__)
        if not came:
            return self._end(one, "closed")
        one.heard += came
        head, _, body = one.heard.partition(b"\r\n\r\n")
        head = head.lower()
        if len(body) < int(head.partition(b"content-length: ")[2].partition(b"\r")[0] or b"1"):
            return None
        self._over(one.asked, head[9:12].decode())
        if b"connection: close" in head:
            self._end(one, "")
        else:
            self._free.append(one)
        return None

    def _over(self, asked: Asked, told: str) -> None:
        if not asked.told:
            asked.told, asked.over = told, time.monotonic()
            self._waiting -= 1

    def _end(self, one: _Connection, told: str) -> None:
        self._over(one.asked, told)
        del self._open[one.own.fileno()]
        one.own.close()
