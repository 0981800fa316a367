# SPDX-License-Identifier: Apache-2.0
"""On this machine, outside the state directory: the service, the daemon, sockets in a short place."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.texts.terminal import phrase
from goodbot.base import spawn
from goodbot.base.clock import SystemClock
from goodbot.base.errors import GoodbotError
from goodbot.cli import service as services
from goodbot.cli.uninstall.trace import Leaving, Trace
from goodbot.config import clear
from goodbot.config.lock import holder, short_socket

_STOPS_SECONDS = 60.0
"""An answer under way is still sent, a training is let go of."""


async def service(leaving: Leaving) -> Sequence[Trace]:
    """What `goodbot service install` has made."""

    async def remove() -> None:
        await asyncio.to_thread(services.uninstall, leaving.home)

    found = await asyncio.to_thread(services.uninstall, leaving.home, dry_run=True)
    return [Trace(kind="service", what=what, remove=remove) for what in found[:1]]


async def daemon(leaving: Leaving) -> Sequence[Trace]:
    """A goodbot that runs; it is asked to stop as by Ctrl-C."""
    runs, pid = holder(leaving.home)

    async def remove() -> None:
        await _stop(leaving.home)

    what = phrase("uninstall_daemon", pid=pid)
    return [Trace(kind="daemon", what=what, remove=remove)] if runs else []


async def _stop(home: Path) -> None:
    runs, pid = holder(home)
    if runs and pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    clock = SystemClock()
    end = clock.monotonic() + _STOPS_SECONDS
    while holder(home)[0]:
        if clock.monotonic() > end:
            raise GoodbotError(phrase("uninstall_stuck", pid=pid))
        await clock.sleep(0.1)


async def sockets(leaving: Leaving) -> Sequence[Trace]:
    """A killed daemon's sockets, where the state directory's path was too long for them."""
    home = leaving.home
    places = [home / "control.sock", home / "http.sock", home / "connectors" / "terminal" / "chat.sock"]
    short = [path for place in places if (path := short_socket(place)) is not None]

    async def remove() -> None:
        for path in short:
            path.unlink(missing_ok=True)
        if short:
            with contextlib.suppress(OSError):  # another goodbot has one there
                short[0].parent.rmdir()

    left = [path for path in short if os.path.lexists(path)]
    if short and not left and _is_empty(short[0].parent):
        left = [short[0].parent]
    return [Trace(kind="socket", what=str(left[0]), remove=remove)] if left else []


async def scratch(leaving: Leaving) -> Sequence[Trace]:
    """What children of a goodbot that was killed had for themselves, or to read; not of one that runs."""

    async def remove() -> None:
        await asyncio.to_thread(spawn.sweep)
        await asyncio.to_thread(clear.sweep, leaving.home)

    left = await asyncio.to_thread(lambda: [*spawn.abandoned(), *clear.abandoned(leaving.home)])
    if not left:
        return []
    more = len(left) - 1
    what = phrase("uninstall_like", path=left[0], count=more) if more else str(left[0])
    return [Trace(kind="scratch", what=what, remove=remove)]


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
