"""`/healthz` and `/readyz` for a supervisor. Import it only where a port is configured: aiohttp.

`/healthz` is 200 as long as the event loop turns. `/readyz` is 200 once every part works, else 503
with the names of the parts that do not. Both answer GET and HEAD, to a `Host` that is this machine.
"""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import hdrs, web

from goodbot.config import HttpConfig
from goodbot.errors import ConfigError
from goodbot.web.readiness import OK

logger = logging.getLogger(__name__)

Parts = Callable[[], Awaitable[Mapping[str, str]]]
"""The state of each part by name; empty while goodbot is starting."""

_LONGEST_LINE = 1024
"""Bytes of a request's first line, and of each of its headers."""
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_METHODS = (hdrs.METH_GET, hdrs.METH_HEAD)


class HealthServer:
    """Listens on the configured port."""

    def __init__(self, config: HttpConfig, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self._runner: web.ServerRunner | None = None
        self._names = frozenset((*_LOCAL, _bracketed(config.host).lower()))

    async def start(self) -> None:
        """Listen. Raises ConfigError when the address cannot be had."""
        host, port = self._config.host, self._config.port
        server = _Server(
            self._answer, access_log=None, lingering_time=0.0,
            max_line_size=_LONGEST_LINE, max_field_size=_LONGEST_LINE,
        )  # fmt: skip
        self._runner = web.ServerRunner(server)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, backlog=16).start()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"[http] cannot listen on {host} port {port} ({error.strerror or error}): "
                "set another port, or 0 for none"
            ) from error
        if not _is_loopback(host):
            logger.warning("[http] host = %s: others on the network can ask how goodbot is", host)

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self._is_ours(request):
            return _Answer(421, {"status": "this host name is not goodbot's"})
        if request.path not in ("/healthz", "/readyz"):
            return _Answer(404, {"status": "there are /healthz and /readyz"})
        if request.method not in _METHODS:
            return _Answer(405, {"status": "GET or HEAD"}, {hdrs.ALLOW: ", ".join(_METHODS)})
        if request.path == "/healthz":
            return _Answer(200, {"status": "ok"})
        parts = await self._parts()
        missing = sorted(name for name, state in parts.items() if state != OK)
        if not parts:
            return _Answer(503, {"status": "starting"})
        status = "unavailable" if missing else "ready"
        return _Answer(503 if missing else 200, {"status": status, "missing": missing, **parts})

    def _is_ours(self, request: web.BaseRequest) -> bool:
        """Whether the client meant us: a page whose name was rebound to this address did not."""
        given = request.headers.getall(hdrs.HOST, [])
        if len(given) != 1:
            return False
        name, colon, port = given[0].rpartition(":")
        if not colon or not port.isdecimal():
            name = given[0]
        return name.lower() in self._names | {_bracketed(_arrived_at(request))}


class _Answer(web.Response):
    """One JSON object; the connection ends with it."""

    def __init__(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        guards = {hdrs.CACHE_CONTROL: "no-store", "X-Content-Type-Options": "nosniff"}
        super().__init__(
            status=status, text=json.dumps(body) + "\n", content_type="application/json",
            headers={**guards, **(headers or {})},
        )  # fmt: skip
        self.force_close()

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.popall(hdrs.SERVER, None)  # which versions we run is nobody's business


class _Protocol(web.RequestHandler):
    """Answers what is no HTTP as briefly as the rest, and does not log what it was."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:  # fmt: skip
        if status == 500:
            logger.error("a health check failed", exc_info=exc)
        return _Answer(status, {"status": "error"})


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Protocol(self, loop=self._loop, **self._kwargs)


def _arrived_at(request: web.BaseRequest) -> str:
    """The address of ours that the client has connected to: no name, so nobody can rebind it."""
    transport = request.transport
    name = transport.get_extra_info("sockname") if transport else None
    if not name:
        return ""
    address = ipaddress.ip_address(str(name[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
