# SPDX-License-Identifier: Apache-2.0
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

from aiohttp import web
from goodbot.base.errors import StoreError
from goodbot.config.secrets import Secret

from goodbot_connectors.kit.listener import Listener
from goodbot_connectors.telegram.intake import Intake, Taken

logger = logging.getLogger(__name__)

HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Webhook:
    """Listens for updates, as many side by side as Telegram likes."""

    def __init__(
        self,
        intake: Intake,
        follow_up: Callable[[Taken], None],
        *,
        url: str,
        host: str,
        port: int,
        secret: str,
    ) -> None:
        self._intake, self._follow_up = intake, follow_up
        self._secret = secret.encode()
        self._listener = Listener(
            self._receive, path=urlsplit(url).path or "/", host=host, port=port, setting="webhook_port"
        )

    async def start(self) -> None:
        """Listen. Raises FatalConnectorError when the address cannot be had."""
        await self._listener.start()

    async def stop(self) -> None:
        """Answer what is under way and stop listening; idempotent."""
        await self._listener.stop()

    @property
    def port(self) -> int:
        """The port in use."""
        return self._listener.port

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


def secret_of(token: Secret) -> str:
    """What only Telegram and we know: 64 hexadecimal digits, the same after every restart."""
    return hmac.new(token.reveal().encode(), b"goodbot webhook", hashlib.sha256).hexdigest()
