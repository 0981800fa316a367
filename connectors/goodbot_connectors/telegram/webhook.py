"""Webhook mode: Telegram calls us. Import it only where `mode = "webhook"` is set: aiohttp.

We listen on the loopback by default; a reverse proxy with a certificate stands in front. Telegram
repeats a call until it gets a 200, which leaves after the commit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from goodbot.errors import FatalConnectorError, StoreError
from goodbot.secrets import Secret

from goodbot_connectors.telegram.intake import Intake, Taken

logger = logging.getLogger(__name__)

HEADER = "X-Telegram-Bot-Api-Secret-Token"
_LAST_CALLS = 1.0
"""Seconds for what is under way at a stop (aiohttp waits twice as long): Telegram calls again."""
_LARGEST = 1 << 20
"""Bytes of a call; an update is a few thousand."""


class Webhook:
    """Listens for updates, as many side by side as Telegram likes."""

    def __init__(
        self, intake: Intake, follow_up: Callable[[Taken], None], *, url: str, host: str,
        port: int, secret: str,
    ) -> None:  # fmt: skip
        self._intake, self._follow_up = intake, follow_up
        self._path = urlsplit(url).path or "/"
        self._host, self._port = host, port
        self._secret = secret.encode()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises FatalConnectorError when the address cannot be had."""
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_post(self._path, self._receive)
        application.on_response_prepare.append(_unnamed)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_LAST_CALLS)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self.stop()
            raise FatalConnectorError(
                f"telegram cannot listen on {self._host} port {self._port} "
                f"({error.strerror or error}): set another webhook_port"
            ) from error

    async def stop(self) -> None:
        """Answer what is under way and stop listening; idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @property
    def port(self) -> int:
        """The port in use; another than was asked for if that was 0."""
        assert self._runner is not None  # noqa: S101  asked after `start`
        return self._runner.addresses[0][1]

    async def _receive(self, request: web.Request) -> web.Response:
        given = request.headers.get(HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._secret):
            return web.Response(status=401)
        try:
            update = json.loads(await request.read())
        except (ValueError, RecursionError):
            return web.Response(status=400)
        try:
            taken = await self._intake.take([update])
        except StoreError as error:
            logger.warning("telegram: %s; Telegram will call again", error)
            return web.Response(status=503)
        self._follow_up(taken)
        return web.Response()


async def _unnamed(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.popall(hdrs.SERVER, None)  # which versions we run is nobody's business


def secret_of(token: Secret) -> str:
    """What only Telegram and we know: 64 hexadecimal digits, the same after every restart."""
    return hmac.new(token.reveal().encode(), b"goodbot webhook", hashlib.sha256).hexdigest()
