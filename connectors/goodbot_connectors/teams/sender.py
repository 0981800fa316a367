# SPDX-License-Identifier: Apache-2.0
"""HTTP under the SDK's client: aiohttp, our token, and errors of our kind.

msrest, on which the SDK stands, sends by `requests` in threads, with retries that it sleeps through,
and its own aiohttp sender drops the body. Here is the one place where a request leaves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from msrest.pipeline import AsyncHTTPSender, Request, Response
from msrest.universal_http import ClientRequest, HTTPClientResponse

from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.kit.fields import as_json, string, sub
from goodbot_connectors.teams.tokens import AccessToken, ServiceUrls

TARGETED = "x-goodbot-targeted"
"""A header that never leaves: the message is for its recipient alone. The SDK's calls know no such query."""
_BUSY = frozenset({412, 429, 502, 504})
"""What Microsoft asks bots to try again, with pauses that grow and are not all the same."""


class RefusedError(ConnectorError):
    """Teams will not do it, now or later. `code` is what it calls the reason."""

    def __init__(self, message: str, *, code: str = "", said: str = "") -> None:
        self.code, self.said = code, said
        super().__init__(message)


class Sender(AsyncHTTPSender[Any, Any]):
    """Sends one request; whatever is no success is raised."""

    def __init__(self, session: aiohttp.ClientSession, token: AccessToken | None, urls: ServiceUrls) -> None:
        self._session, self._token, self._urls = session, token, urls

    async def send(self, request: Request[ClientRequest], **config: Any) -> Response[Any, Any]:
        """Send it, with a fresh token once more when the first is not taken. Raises ConnectorError."""
        http: Any = request.http_request
        if not self._urls.allows(http.url):
            raise RefusedError("that address is none of Teams's; `service_urls` would add it")
        if http.headers.pop(TARGETED, ""):
            http.format_parameters({"isTargetedActivity": "true"})
        token = await self._token.get() if self._token else ""
        status, headers, body = await self._once(http, token)
        if status == 401 and self._token:
            token = await self._token.get(not_this=token)
            status, headers, body = await self._once(http, token)
        if status not in (200, 201, 202, 204):
            raise _error(status, headers, body)
        return Response(request, _Answer(http, status, headers, body))

    async def _once(self, http: Any, token: str) -> tuple[int, Mapping[str, str], bytes]:
        if self._session.closed:
            raise RetriableError("the Teams connector has stopped")
        headers = {**http.headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            async with self._session.request(
                http.method,
                http.url,
                data=http.data,
                headers=headers,
                allow_redirects=False,
                proxy=proxy_url(http.url),
            ) as answer:
                return answer.status, dict(answer.headers), await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RetriableError(f"Teams cannot be reached: {type(error).__name__}") from None

    def build_context(self) -> Any:
        """Nothing that the SDK's policies could want."""
        return None

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The session is whoever made it."""


class _Answer(HTTPClientResponse):
    """What came back, as msrest reads it. An answer that is no JSON counts as an empty one."""

    def __init__(self, request: ClientRequest, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(request, None)
        self.status_code, self.reason = status, ""
        self.headers = {"content-type": "application/json"}
        self._body = json.dumps(_json(body)).encode() if body else b""

    def body(self) -> bytes:
        return self._body


def _error(status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
    said = sub(_json(body), "error")
    code, text = string(said, "code")[:80], string(said, "message")[:200]
    if status in _BUSY:
        return FloodError(f"Teams asks for a pause ({status})", retry_after=_pause(headers))
    if status == 401:
        return FatalConnectorError(
            "Teams does not take our access token: is app_id the one of the bot registration in "
            "the Azure portal, and its app of the same kind (single tenant or not)?"
        )
    if status >= 500 or status == 408:
        return RetriableError(f"Teams failed ({status})")
    return RefusedError(f"Teams refused ({status} {code or 'without a reason'})", code=code, said=text)


def _pause(headers: Mapping[str, str]) -> float:
    value = next((v for k, v in headers.items() if k.lower() == "retry-after"), "")
    return min(float(value), 600.0) if value.isascii() and value.isdecimal() else 0.0


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        return as_json(json.loads(body))
    except (ValueError, RecursionError):
        return {}
