# SPDX-License-Identifier: Apache-2.0
"""Where the daemon is reached by HTTP: who may add something there, and when it listens at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from goodbot.api.texts import say
from goodbot.base.clock import SystemClock
from goodbot.base.descriptors import Descriptors
from goodbot.base.errors import ConfigError, StoreError
from goodbot.base.worded import Worded
from goodbot.config import HttpConfig
from goodbot.config.lock import HTTP_SOCKET, socket_path
from goodbot.config.sections import PORT

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

    from goodbot.daemon.http.server import HttpServer

logger = logging.getLogger(__name__)

_OTHERS = 9
"""Ports behind the usual one that are tried where that is taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartsSeen:
    """How the parts of goodbot are; nothing is known of them while it is starting."""

    codes: Mapping[str, str] = field(default_factory=dict[str, str])
    """`ok` and the like, by the name of the part."""
    told: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a person reads in place of the code, where it says more. Nothing is decided by it."""


Parts = Callable[[], Awaitable[PartsSeen]]


async def starting() -> PartsSeen:
    """Nothing is known of the parts yet."""
    return PartsSeen()


class Http:
    """One a process: it outlives the App, which may be replaced by another.

    `start` listens where a port is configured, `open` and `mount` also where a connector has routes.
    """

    def __init__(self, config: HttpConfig, parts: Parts = starting, home: Path | None = None) -> None:
        """`home` is the state directory, for the Unix socket in it; without one there is none."""
        self._config = config
        self._home = home
        self._parts = parts
        self._server: HttpServer | None = None
        self.descriptors = Descriptors(SystemClock())

    @property
    def address(self) -> str:
        """The base URL for links, also before anything listens."""
        if self._config.url:
            return self._config.url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._config.host, self._config.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def _port(self) -> int:
        return self._server.port if self._server else self._config.port or PORT

    def moved(self, language: str = "") -> str:
        """That the usual port was taken, as a clause; empty: it was not."""
        if self._server is None or self._config.port or self._server.port == PORT:
            return ""
        return say("status_moved", language, port=PORT, address=self.address, own=self._server.port)

    @property
    def listening(self) -> bool:
        """Whether anything can be asked."""
        return self._server is not None

    async def start(self) -> None:
        """Listen if a port is configured, and hear of connections that cannot be taken.

        Raises ConfigError when the port cannot be had.
        """
        self.descriptors.watch()
        if self._config.port:
            await self._listen()

    async def open(self) -> None:
        """Listen, for a connector that has routes: from now on `address` is where they are.

        Raises ConfigError when the port cannot be had, or when tokens and texts would cross a network and
        nobody has said that they may.
        """
        self._require_meant()
        await self._listen()

    async def mount(
        self, routes: Mapping[str, Sequence[AbstractRouteDef]], running: Callable[[str], bool]
    ) -> None:
        """Answer what these connectors and features answer, while `running(name)`; each else gets a 503.

        Raises ConfigError as `open` does, and when two of them want the same path.
        """
        routes = {name: own for name, own in routes.items() if own}
        if routes:
            await self.open()
        if self._server is not None:
            from goodbot.daemon.http.routes import application

            await self._listen_at_home(self._server)
            await self._server.mount(application(routes, running))

    async def unmount(self) -> None:
        """Answer health alone again; idempotent. What is under way gets a second."""
        if self._server is not None:
            await self._server.unmount()

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _listen(self) -> None:
        if self._server is None:
            from goodbot.daemon.http.server import HttpServer

            server = HttpServer(self._config, self._parts)
            # Whoever has named a port has told others of it; a proxy behind a `url` goes to the usual one.
            told = self._config.port or self._config.url
            await server.start(self._config.port or PORT, others=0 if told else _OTHERS)
            self._server = server
            if moved := self.moved():
                logger.warning("[http] %s", moved)

    def _require_meant(self) -> None:
        """Whoever opens this to a network has said at which address, so how: TLS, a VPN, a container."""
        from goodbot.base.addresses import is_here

        host = self._config.host
        if not self._config.url and not is_here(host):
            address = f"http://localhost:{self._config.port or PORT}"
            open_ = (
                '[http] host = "{host}" would let others on the network reach goodbot. Tokens and '
                "texts would "
                "cross it unencrypted. Take `host` out and put a proxy with TLS before goodbot. If it "
                "is meant "
                'so (a container, a VPN), say in `url` where people open it, like "{address}"'
            )
            raise ConfigError(Worded(open_, host=host, address=address))

    async def _listen_at_home(self, server: HttpServer) -> None:
        """A Unix socket for programs of this machine; by now the directory's lock is ours."""
        if self._home is None or not self._config.socket:
            return
        try:
            await server.listen_at(socket_path(self._home, HTTP_SOCKET))
        except (OSError, StoreError) as error:
            logger.warning(
                "[http] there is no Unix socket for programs of this machine (%s): they reach goodbot at "
                "%s; `socket = false` ends this warning",
                (error.strerror if isinstance(error, OSError) else "") or error,
                self.address,
            )
