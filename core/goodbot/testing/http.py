# SPDX-License-Identifier: Apache-2.0
"""A real HTTP server on the loopback, as the daemon's, for a connector with routes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from goodbot.api.connector import Connector
from goodbot.config import HttpConfig
from goodbot.daemon.http.http import starting

if TYPE_CHECKING:
    from aiohttp import web


class LocalServer:
    """Its port is open from the beginning; who calls before `mount` waits."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open: set[Connector] = set()
        self._mounted = False

    def follow(self, connector: Connector) -> None:
        """Shut the routes of a connector until it has started, and once it stops."""
        start, stop = connector.start, connector.stop

        async def started() -> None:
            await start()
            self._open.add(connector)

        async def stopped() -> None:
            self._open.discard(connector)
            await stop()

        connector.start, connector.stop = started, stopped

    async def mount(self, connector: Connector, routes: Sequence[web.AbstractRouteDef]) -> None:
        """Answer its routes in place of those of the connector before it."""
        from goodbot.daemon.http.routes import application
        from goodbot.daemon.http.server import HttpServer

        if not self._mounted:
            self._mounted = True
            self._server = HttpServer(HttpConfig(), starting)
            await self._server.start(0, self._socket)
        own = {connector.spec.name: routes}
        await self._server.mount(application(own, lambda _: connector in self._open))

    async def close(self) -> None:
        """Stop answering."""
        if self._mounted:
            await self._server.stop()
        self._socket.close()
