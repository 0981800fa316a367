# SPDX-License-Identifier: Apache-2.0
"""Sockets to listen at."""

from __future__ import annotations

import asyncio
import contextlib
import socket


async def bound(host: str, port: int) -> list[socket.socket]:
    """Sockets at all addresses of that name. Raises OSError."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    with contextlib.closing(server), contextlib.ExitStack() as taken:
        ours = [taken.enter_context(one.dup()) for one in server.sockets]
        taken.pop_all()
    return ours
