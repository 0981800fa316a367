# SPDX-License-Identifier: Apache-2.0
"""Our access token for the Bot Connector: OAuth 2.0 client credentials (RFC 6749, 4.4).

The SDK asks for it with msal, which blocks the event loop and takes no address but https; one POST is
all there is to it. The token goes to addresses of `ServiceUrls` and to nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from goodbot.config.secrets import Secret

from goodbot_connectors.kit.fields import as_json, string
from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings, is_loopback

SCOPE = "https://api.botframework.com/.default"
_MULTI_TENANT = "botframework.com"
"""Stands for the tenant of a bot that is for many."""
_EARLY = 300.0
"""A token is renewed so many seconds before it ends: a clock may be that wrong."""
_TEAMS = frozenset(
    {
        "smba.trafficmanager.net",
        "smba.infra.gcc.teams.microsoft.com",
        "smba.infra.gov.teams.microsoft.us",
        "smba.infra.dod.teams.microsoft.us",
    }
)
"""Where the Bot Connector of Teams is, in the public cloud and in those of the US government."""


class ServiceUrls:
    """The addresses of the Bot Connector that we speak to."""

    def __init__(self, settings: TeamsSettings) -> None:
        self._local = settings.insecure_local
        self._more = frozenset(map(_origin, settings.service_urls))

    def allows(self, url: str) -> bool:
        """Whether we send anything there. An activity says where, so it may be anybody's wish."""
        if self._local:
            return is_loopback(url)
        scheme, host, port = _origin(url)
        teams = scheme == "https" and host in _TEAMS and port in (None, 443)
        return teams or bool(host and (scheme, host, port) in self._more)


class AccessToken:
    """A token that is asked for when it is needed, once for all who wait."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        clock: Clock,
        settings: TeamsSettings,
        password: Secret,
        trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`trouble` is told that the secret has run out, as they do; and then that it works again."""
        self._session, self._clock, self._settings = session, clock, settings
        self._password, self._trouble, self._refused = password, trouble, False
        self._token, self._until = "", 0.0
        self._one = asyncio.Lock()

    async def get(self, *, not_this: str = "") -> str:
        """A token that holds; `not_this` is one that was refused.

        Raises FatalConnectorError when the app's secret is wrong, RetriableError when nobody answers.
        """
        async with self._one:
            if self._token in ("", not_this) or self._clock.monotonic() >= self._until:
                self._token, self._until = await self._renewed()
            return self._token

    async def _renewed(self) -> tuple[str, float]:
        try:
            renewed = await self._ask()
        except FatalConnectorError:
            self._refused = True
            self._trouble(f"Microsoft does not take {APP_PASSWORD} any more: make a new secret")
            raise
        if self._refused:
            self._refused = False
            self._trouble("")
        return renewed

    async def _ask(self) -> tuple[str, float]:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._settings.app_id,
            "client_secret": self._password.reveal(),
            "scope": SCOPE,
        }
        url = endpoint(self._settings)
        try:
            async with self._session.post(
                url, data=form, allow_redirects=False, proxy=proxy_url(url)
            ) as answer:
                status, body = answer.status, as_json(await answer.json(content_type=None))
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise RetriableError(
                f"Microsoft gives no access token: {type(error).__name__}", retry_after=5.0
            ) from None
        token, lasts = string(body, "access_token"), body.get("expires_in")
        if status == 200 and token and isinstance(lasts, (int, float)):
            return token, self._clock.monotonic() + max(lasts - _EARLY, 1.0)
        raise self._refusal(status, string(body, "error"), string(body, "error_description"))

    def _refusal(self, status: int, error: str, description: str) -> ConnectorError:
        if status == 429 or status >= 500 or not error:
            return RetriableError(f"Microsoft gives no access token ({status})", retry_after=5.0)
        code, _, _ = description.partition(":")
        code = code if code.startswith("AADSTS") and code.isalnum() else error[:60]
        whose = f"the tenant {self._settings.tenant}" if self._settings.tenant else "no tenant"
        return FatalConnectorError(
            f"Microsoft does not accept {APP_PASSWORD} for app_id {self._settings.app_id} and {whose} "
            f"({code}): compare both ids with the app's Overview page, and make a new secret under "
            "Certificates & secrets (copy its Value, not its ID)"
        )


def endpoint(settings: TeamsSettings) -> str:
    """Where a token for this app comes from."""
    tenant = settings.tenant or _MULTI_TENANT
    return settings.token_endpoint or f"https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token"


def _origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port; an address with a user in it, or that is none, has no host."""
    try:
        parts = urlsplit(url)
        host = "" if "@" in parts.netloc else parts.hostname or ""
        return parts.scheme, host, parts.port
    except ValueError:
        return "", "", None
