# SPDX-License-Identifier: Apache-2.0
"""The daemon's word to the manager that started it: sd_notify(3), without a library.

Without `NOTIFY_SOCKET` in the environment, as in a terminal, nothing is sent anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping

from goodbot.base.clock import Clock

logger = logging.getLogger(__name__)


class Notifier:
    """Sends datagrams to the manager. A manager that does not listen is no reason to fail."""

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog = watchdog
        """Seconds after which the manager kills us unless we are heard of; 0: it never does."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Notifier:
        """The one that our environment names. A watchdog for another process is none of ours."""
        given = os.environ if environ is None else environ
        pid, limit = given.get("WATCHDOG_PID", ""), given.get("WATCHDOG_USEC", "")
        ours = not pid or pid == str(os.getpid())
        watchdog = int(limit) / 1e6 if ours and limit.isdecimal() else 0.0
        return cls(given.get("NOTIFY_SOCKET", ""), watchdog)

    def ready(self, status: str) -> None:
        """All is started, or is again after `reloading`."""
        self._send("READY=1", f"STATUS={_line(status)}")

    def status(self, status: str) -> None:
        """What we are at, in one line."""
        self._send(f"STATUS={_line(status)}")

    def reloading(self, clock: Clock, status: str) -> None:
        """Parts are being replaced; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={int(clock.monotonic() * 1e6)}", f"STATUS={_line(status)}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1", "STATUS=stopping")

    async def feed(self, clock: Clock, alive: Callable[[], Awaitable[bool]]) -> None:
        """Say that we live, twice in each limit, as long as `alive` says so in time.

        `alive` runs on our event loop: if that hangs, so does this. Returns without a watchdog.
        """
        pause = self.watchdog / 2
        while self.watchdog:
            answered = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    answered = await alive()
            if answered:
                self._send("WATCHDOG=1")
            else:
                logger.error("the watchdog was not fed: the store does not answer")
            await clock.sleep(pause)

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.connect(self._address)
                sender.send("\n".join(lines).encode())
        except OSError as error:
            logger.debug("the service manager was not told: %s", error)


def _line(text: str) -> str:
    return " ".join(text.split())
