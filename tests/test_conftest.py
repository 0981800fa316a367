"""The guard of `conftest.py` itself."""

from __future__ import annotations

import asyncio
import socket

import pytest


def test_other_addresses_and_names_are_refused() -> None:
    with socket.socket() as connection, pytest.raises(PermissionError, match="only loopback"):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(PermissionError, match="may not look up"):
        socket.getaddrinfo("example.invalid", 80)


async def test_loopback_works() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("localhost", port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
