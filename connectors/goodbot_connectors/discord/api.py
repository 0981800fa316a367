# SPDX-License-Identifier: Apache-2.0
"""The REST calls that we make, over discord.py's HTTP client, with goodbot's errors.

JSON goes in and comes out, as Discord has it. discord.py knows the buckets of the rate limit; where it
would wait, we are told instead, and decide: an edit on the way is left out, the last one waits. No error
text of discord.py's leaves this module, and its log is stripped: both quote addresses with tokens.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import aiohttp
import discord
from discord.http import HTTPClient, Ratelimit, Route
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from goodbot.config.secrets import Secret

from goodbot_connectors.discord.config import TOKEN
from goodbot_connectors.discord.identity import BotIdentity
from goodbot_connectors.discord.permissions import ROUTES
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.backoff import FloodError, patiently
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import Json, as_json, string

_SECONDS = 30.0
_LONGEST_HOUR = 3600.0
_AT_ONCE = 0.001
"""Seconds that discord.py may wait for a bucket by itself; 0 would mean for ever."""
_NO_PERMISSION = (50001, 50013)
GONE = 10008
"""Of a message."""
_WEBHOOK_TOKEN = 50027
"""An interaction's token that is over; the status is that of a wrong bot token."""
_LOGGERS = ("discord.http", "discord.gateway", "discord.client", "discord.state", "discord.webhook.async_")


class RefusedError(ConnectorError):
    """Discord said no. `code` is its number for why (`GONE`: the message is), or the HTTP status."""

    def __init__(self, route: str, status: int, code: int) -> None:
        self.status, self.code = status, code or status
        text = f"Discord refused {route} ({self.code})"
        if code in _NO_PERMISSION:
            text = (
                f"Discord refused {route} ({code}): the bot lacks a permission there; give it those of "
                "`goodbot manifest discord`"
            )
        super().__init__(text)


class _Bucket(Ratelimit):
    """discord.py's count of what a bucket still holds; where it would wait, it says for how long."""

    async def acquire(self) -> None:
        now = asyncio.get_running_loop().time()
        self._last_request = now
        if self.is_expired():
            self.reset()
        if self.expires is not None and self.remaining <= 0:
            raise discord.RateLimited(self.expires - now)
        self.remaining -= 1
        self.outgoing += 1

    async def __aexit__(self, *_: object) -> None:
        self.outgoing -= 1
        if self.expires is None:  # no headers: nothing is known of it
            self.remaining = self.limit - self.outgoing


class _Http(HTTPClient):
    """discord.py's, at an address of its own, that never waits."""

    def __init__(self, base: str, dates: Dates) -> None:
        super().__init__(asyncio.get_running_loop(), http_trace=dates.trace())
        self.max_ratelimit_timeout = _AT_ONCE
        self._base = base.rstrip("/")

    def get_ratelimit(self, key: str) -> Ratelimit:
        if key not in self._buckets:
            self._try_clear_expired_ratelimits()
            self._buckets[key] = _Bucket(self.max_ratelimit_timeout)
        return super().get_ratelimit(key)

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        self.proxy = proxy_url(str(url))
        return await super().ws_connect(url, compress=compress)

    async def request(self, route: Route, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._base:
            route.url = self._base + route.url.removeprefix(Route.BASE)
        self.proxy = proxy_url(route.url)  # read at once, before anything else may run
        return await super().request(route, **options)


class Api:
    """One bot account. Every call raises a `ConnectorError` of the fitting kind."""

    def __init__(self, token: Secret, clock: Clock, base: str = "", dates: Dates | None = None) -> None:
        if not token:
            raise FatalConnectorError(
                f"set {TOKEN} to the token of your bot; `goodbot connect discord` says where it is found"
            )
        self._clock, self._token = clock, token
        self.http = _Http(base, dates or Dates(clock))

    async def open(self) -> BotIdentity:
        """Log in; who we are."""
        try:
            async with asyncio.timeout(_SECONDS):
                user = as_json(await self.http.static_login(self._token.reveal()))
        except Exception as error:
            raise _ours("GET /users/@me", error) from None
        app = await self.call("GET", "/applications/@me")
        flags = app.get("flags")
        return BotIdentity(
            user=identifier(user.get("id")),
            application=identifier(app.get("id")),
            name=string(user, "username"),
            flags=flags if isinstance(flags, int) else 0,
        )

    async def close(self) -> None:
        """Let go of the connections; idempotent."""
        await self.http.close()

    async def call(self, method: str, path: str, **options: Any) -> Json:
        """One request of `permissions.ROUTES`; see `_call`. An object comes back, or an empty one."""
        return as_json(await self._call(method, path, **options))

    async def list(self, method: str, path: str, **options: Any) -> list[Json]:
        """One request that gives a list: its objects."""
        found = await self._call(method, path, **options)
        several = cast("list[object]", found) if isinstance(found, list) else []
        return [cast("Json", one) for one in several if isinstance(one, dict)]

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: dict[str, Any] | None = None,
        patient: bool = True,
        seconds: float = _SECONDS,
        **ids: str,
    ) -> Any:
        """One request; `ids` fill in the path. A `patient` one waits when Discord asks for a pause."""
        if f"{method} {path}" not in ROUTES:
            raise ConnectorError(f"{method} {path} is not among the routes that the invite link covers")

        async def once() -> Any:
            given: dict[str, Any] = {} if body is None else {"json": body}
            try:
                async with asyncio.timeout(seconds):
                    return await self.http.request(Route(method, path, **ids), params=query or {}, **given)
            except Exception as error:
                raise _ours(f"{method} {path}", error) from None

        return await patiently(self._clock, once, patient=patient)


def _ours(route: str, error: Exception) -> Exception:
    """discord.py's error as one of ours."""
    if isinstance(error, discord.RateLimited):
        pause = min(max(error.retry_after, 0.0), _LONGEST_HOUR)
        return FloodError(f"Discord asks for a pause ({route})", retry_after=pause)
    if isinstance(error, discord.LoginFailure):
        return FatalConnectorError(_wrong_token())
    if isinstance(error, discord.HTTPException):
        if error.status == 401 and error.code != _WEBHOOK_TOKEN:
            return FatalConnectorError(_wrong_token())
        if error.status == 429:  # Cloudflare's, without a bucket
            return FloodError(f"Discord asks for a pause ({route})", retry_after=_pause(error))
        if error.status >= 500:
            return RetriableError(f"Discord failed: {error.status} ({route})")
        return RefusedError(route, error.status, error.code)
    if isinstance(error, (aiohttp.ClientError, TimeoutError, OSError)):
        return RetriableError(f"Discord cannot be reached: {type(error).__name__}")
    if isinstance(error, ConnectorError):
        return error
    return ConnectorError(f"{route} failed: {type(error).__name__}")


def _wrong_token() -> str:
    return (
        f"Discord does not take the token ({TOKEN}): reset it at discord.com/developers/applications, "
        "Bot, and store the new one with `goodbot connect discord`"
    )


def _pause(error: discord.HTTPException) -> float:
    headers: Any = getattr(error.response, "headers", {})
    try:
        return min(max(float(headers.get("Retry-After", 60)), 1.0), _LONGEST_HOUR)
    except ValueError:
        return 60.0


class _Quiet(logging.Filter):
    """What discord.py logs may quote messages, addresses and tokens: only its own words are kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        words = str(record.msg).partition("%")[0].partition("{")[0].strip()
        record.msg, record.args, record.exc_info = f"discord.py: {words[:100]}", (), None
        return True


def _tame() -> None:
    quiet = _Quiet()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(quiet)
        logging.getLogger(name).setLevel(logging.ERROR)  # it warns of what we do on purpose


_tame()
