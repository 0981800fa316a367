# SPDX-License-Identifier: Apache-2.0
"""Bytes to a port of ours, and what comes back."""

from __future__ import annotations

import asyncio


async def raw(port: int, request: bytes, host: str = "127.0.0.1") -> tuple[int, str, bytes]:
    """Status, head and body of what answers to these bytes, once the connection has ended."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    text = head.decode().lower()
    return int(text.split()[1]), text, body


async def get(
    port: int, path: str, host: str = "localhost", method: str = "GET", body: bytes = b""
) -> tuple[int, str]:
    """Status and text of a page."""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}Connection: close\r\n\r\n"
    status, head, said = await raw(port, head.encode() + body)
    assert "aiohttp" not in head, "which versions run is nobody's business"
    assert "access-control" not in head
    return status, said.decode()
