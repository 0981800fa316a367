# SPDX-License-Identifier: Apache-2.0
"""Drivers of servers that are fakes, and what they are given."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from goodbot.api.address import checked
from goodbot.api.server import ServerParts
from goodbot.config.secrets import Secret
from goodbot.inference.servers.remote import RemoteServer

from tests.core.builders import SPEC, server_parts
from tests.support import patience

S = TypeVar("S", bound=RemoteServer)


def parts(url: str, *, key: str = "", **changes: Any) -> ServerParts:
    """For a driver of the server at `url`."""
    return replace(server_parts(SPEC, Path("/nowhere"), url=checked(url), key=Secret(key)), **changes)


@contextlib.asynccontextmanager
async def started(server: S) -> AsyncIterator[S]:
    """Started here, stopped at the end."""
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; fail if it does not within ten seconds."""
    async with asyncio.timeout(patience(10)):
        while not condition():  # noqa: ASYNC110  fakes have no event for it
            await asyncio.sleep(0.005)


async def nothing(*_: object) -> tuple[str, ...]:
    """In place of what would ask a server that hangs what it has."""
    return ()
