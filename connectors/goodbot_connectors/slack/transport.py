# SPDX-License-Identifier: Apache-2.0
"""How payloads reach us: a WebSocket that we open (Socket Mode), or signed HTTP requests.

Both hand a payload to bolt, and acknowledge it only when bolt's answer is a 200; anything else makes
Slack send it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from aiohttp import web
from goodbot.api.connector import ConnectorHost
from goodbot.base.clock import growing
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from goodbot_connectors.kit.backoff import spread
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import as_json, string
from goodbot_connectors.kit.listener import Listener
from goodbot_connectors.slack.api import LOGGER, Api
from goodbot_connectors.slack.config import SIGNING_SECRET, SlackSettings

logger = logging.getLogger(__name__)

_PING = 5.0
_CONNECT = 20.0
_LOOK = 2.0
SILENT = 4 * _PING + _LOOK
"""Seconds until a network that died without a word is noticed: slack_sdk waits for four pings."""
_STALE = 3
_LONGEST_PAUSE = 30.0


class Transport(Protocol):
    """Delivers payloads to bolt from `start` until `stop` returns."""

    async def start(self) -> None:
        """Raises `FatalConnectorError` where trying again is of no use, else `RetriableError`."""
        ...

    async def stop(self) -> None:
        """Idempotent."""
        ...


class SocketTransport:
    """Socket Mode. slack_sdk's client pings, reconnects, and obeys `disconnect` frames.

    It asks for a new address with `apps.connections.open`, which we answer for it, with our errors.
    Left alone it would try one address for ever, while Slack's are good for one attempt soon after;
    so a watch takes away the address of a connection that does not come up. It tells every two seconds
    that we are `connected`, and whether we were not before.
    """

    def __init__(
        self, host: ConnectorHost, api: Api, app: AsyncApp, connected: Callable[[bool], Awaitable[None]]
    ) -> None:
        self._host, self._api, self._app, self._connected = host, api, app, connected
        self._handler: AsyncSocketModeHandler | None = None
        self._watch: asyncio.Task[None] | None = None
        self._failures = 0
        self._fatal: FatalConnectorError | None = None

    async def start(self) -> None:
        url = await self._open()
        handler = AsyncSocketModeHandler(
            self._app,
            app_token="xapp",  # noqa: S106
            web_client=AsyncWebClient(logger=LOGGER),
            logger=LOGGER,
            ping_interval=_PING,
        )
        self._handler = handler
        client: Any = handler.client
        client.issue_new_wss_url = self._again
        client.wss_uri, client.proxy = url, proxy_url(url)
        client.on_message_listeners.append(self._farewell)
        try:
            async with asyncio.timeout(_CONNECT):
                await handler.connect_async()  # pyright: ignore[reportUnknownMemberType]
        except TimeoutError:
            await self.stop()
            raise RetriableError("Slack's WebSocket cannot be reached") from None
        except BaseException:
            await self.stop()
            raise
        self._watch = self._host.spawn(self._look_after(client), "slack socket")

    async def stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait({watch})
        handler, self._handler = self._handler, None
        if handler is None:
            return
        client: Any = handler.client
        await handler.close_async()  # pyright: ignore[reportUnknownMemberType]
        tasks = (client.message_processor, client.current_session_monitor, client.message_receiver)
        await asyncio.gather(*(t for t in tasks if t is not None), return_exceptions=True)

    async def _farewell(self, frame: Any) -> None:
        """Whoever switched Socket Mode off must switch it on: no reconnect helps."""
        if "link_disabled" not in frame.data:
            return
        told = as_json(json.loads(frame.data))
        if string(told, "type") == "disconnect" and string(told, "reason") == "link_disabled":
            self._fatal = FatalConnectorError(
                "Socket Mode is off for this app: switch it on at api.slack.com/apps, Socket Mode"
            )

    async def _open(self) -> str:
        opened = await self._api.call("apps.connections.open", app=True)
        return string(opened, "url")

    async def _again(self) -> str:
        """A new address for slack_sdk's client, after a pause that grows while there is none."""
        if self._failures:
            pause = growing(self._failures, most=_LONGEST_PAUSE)
            await self._host.clock.sleep(spread(pause))
        self._failures += 1
        try:
            url = await self._open()
        except FatalConnectorError as error:
            self._fatal = error
            raise
        except RetriableError as error:
            self._failures += error.retry_after > _LONGEST_PAUSE
            raise
        self._failures = 1
        if self._handler is not None:
            client: Any = self._handler.client
            client.proxy = proxy_url(url)
        return url

    async def _look_after(self, client: Any) -> None:
        down = 0
        while not self._host.stopping.is_set():
            await self._host.clock.sleep(_LOOK)
            if self._fatal is not None:
                raise self._fatal
            if await client.is_connected():
                self._failures = 0
                if down:
                    logger.info("slack: connected again")
                    self._host.trouble("")
                await self._connected(down > 0)
                down = 0
                continue
            down += 1
            if down == 1:
                logger.warning("slack: the connection is down")
            if down % _STALE == 0:
                self._host.trouble("the connection to Slack is down; it is tried again")
                client.wss_uri = None


class HttpTransport:
    """Requests from Slack, signed, on one path of a port of the loopback interface.

    The signature is checked before anything is parsed; bolt's own server does it the other way round,
    and falls over JSON that is none. What Slack signed just now is known by its clock; by ours, too,
    since after a sleep of this machine Slack has not told its time yet.
    """

    def __init__(self, host: ConnectorHost, settings: SlackSettings, app: AsyncApp, dates: Dates) -> None:
        self._app = app
        secret, clocks = host.secrets.get(SIGNING_SECRET).reveal(), cast("list[Any]", [dates, host.clock])
        self._verifiers = [SignatureVerifier(secret, clock) for clock in clocks]
        self._listener = Listener(
            self._handle,
            path=settings.path,
            host="127.0.0.1",
            port=settings.port,
            setting="`port` in [connectors.slack]",
        )

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        if not self._signed(raw, request):
            return web.Response(status=401)
        try:
            parsed = AsyncBoltRequest(body=raw.decode(), headers=_plain(request))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return web.Response(status=400)
        if not isinstance(cast("object", parsed.body), dict):
            return web.Response(status=400)
        answer = await self._app.async_dispatch(parsed)
        return await to_aiohttp_response(answer)

    def _signed(self, raw: bytes, request: web.Request) -> bool:
        try:
            at = request.headers.get("X-Slack-Request-Timestamp")
            signature = request.headers.get("X-Slack-Signature")
            return any(verifier.is_valid(raw, at, signature) for verifier in self._verifiers)
        except (ValueError, TypeError):  # no number, no UTF-8, no ASCII
            return False


def _plain(request: web.Request) -> dict[str, str | Sequence[str]]:
    return dict(request.headers)
