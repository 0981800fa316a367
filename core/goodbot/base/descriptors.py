# SPDX-License-Identifier: Apache-2.0
"""File descriptors, and sockets to listen at: how many there may be, and what is done where none is left.

A server of asyncio's takes as many connections a turn of the loop as its backlog is long. Without a
descriptor each of those attempts fails, is logged and asks for another try, so that they multiply. Every
such server of ours therefore takes one a turn (`ONE_A_TURN`), and the kernel holds those that wait (`queue`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import resource
import socket
from typing import Any

from goodbot.base.clock import Clock

logger = logging.getLogger(__name__)

ONE_A_TURN = 1
"""The `backlog` that a server of asyncio's is given."""
_WAITING = 512
_WANTED = 8192
"""macOS gives 256, most of Linux 1024."""
_NONE_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TOLD_SECONDS = 60.0


def raise_limit() -> None:
    """As many as we want, or as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def queue(server: asyncio.Server) -> None:
    """Let the kernel hold connections that wait for a server which takes one a turn."""
    for listening in server.sockets:
        with listening.dup() as same:
            same.listen(_WAITING)


async def bound(host: str, port: int) -> list[socket.socket]:
    """Sockets at all addresses of that name. Raises OSError."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    with contextlib.closing(server), contextlib.ExitStack() as taken:
        ours = [taken.enter_context(one.dup()) for one in server.sockets]
        taken.pop_all()
    return ours


class Descriptors:
    """Knows whether connections cannot be taken because no descriptor is left."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = -math.inf

    @property
    def trouble(self) -> str:
        """A sentence, for a minute after the last one that was missing; else empty."""
        if self._clock.monotonic() - self._last > _TOLD_SECONDS:
            return ""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"all {most} file descriptors are taken: new connections have to wait"

    def watch(self) -> None:
        """Hear of it from the running loop, which tries again every second; in place of who heard before."""
        asyncio.get_running_loop().set_exception_handler(self._heard)

    def _heard(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        error = about.get("exception")
        if not (isinstance(error, OSError) and error.errno in _NONE_LEFT and "socket" in about):
            return loop.default_exception_handler(about)
        self._last = self._clock.monotonic()
        logger.warning("%s", self.trouble)
