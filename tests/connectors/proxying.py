# SPDX-License-Identifier: Apache-2.0
"""A real HTTP proxy on loopback that notes what it is asked for; names in `.test` lead to this machine."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import AsyncGenerator, Callable
from urllib.parse import urlsplit

import pytest

PLATFORMS = {"telegram": "telegram", "slack": "slack_bolt", "discord": "discord", "teams": "botbuilder.core"}
"""Those that are elsewhere, and what their connectors need."""
VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
_LINE = re.compile(rb"^([A-Z]+ [a-z]+://[^ ]+) HTTP/1.1\r$", re.MULTILINE)
USER, PASSWORD = "ada", "hush"


class Proxy:
    """CONNECT and absolute addresses, for those who give the credentials."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """`CONNECT slack.com:443`, `GET http://slack.test:1/api/auth.test`."""
        self.refused = 0
        self.port = 0
        self.used = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://{USER}:{PASSWORD}@127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._one(reader, writer)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *headers = head.split("\r\n")
        method, target, _ = line.split(" ", 2)
        told = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if not any(
            header.casefold() == f"proxy-authorization: basic {told}".casefold() for header in headers
        ):
            self.refused += 1
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return await writer.drain()
        self.asked.append(f"{method} {target}")
        self.used.set()
        place = urlsplit(f"//{target}" if method == "CONNECT" else target)
        if not (place.hostname or "").endswith(".test"):
            writer.write(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return await writer.drain()
        far, to = await asyncio.open_connection("127.0.0.1", place.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = f"{place.path or '/'}?{place.query}" if place.query else place.path or "/"
            to.write("\r\n".join([line.replace(target, path, 1), *headers]).encode("latin-1"))
        there, back = _pump(reader, to, self._note), _pump(far, writer)
        await asyncio.wait([asyncio.create_task(there), asyncio.create_task(back)])

    def _note(self, piece: bytes) -> None:
        """A connection may be asked for one thing after the other."""
        self.asked += [line.decode() for line in _LINE.findall(piece)]


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: Callable[[bytes], None] = lambda _: None
) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            note(piece)
            writer.write(piece)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def proxy(monkeypatch: pytest.MonkeyPatch, *variables: str) -> AsyncGenerator[Proxy]:
    """One that the `variables` of the environment name, and no other does."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    found = Proxy()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    for name in variables:
        monkeypatch.setenv(name, found.url)
    try:
        yield found
    finally:
        server.close()
