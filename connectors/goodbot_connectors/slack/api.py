# SPDX-License-Identifier: Apache-2.0
"""The Web API calls that we make, over slack_sdk's client, with goodbot's errors.

JSON goes in and comes out, as Slack has it. No error text of slack_sdk's leaves this module: it quotes
whole responses, and its log quotes messages and tokens.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp
from goodbot.base.clock import Clock
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.base.proxies import proxy_url
from goodbot.config.secrets import Secret
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from goodbot_connectors.kit.backoff import FloodError, jittered
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import Json, as_json, string
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN
from goodbot_connectors.slack.identity import BotIdentity
from goodbot_connectors.slack.methods import METHODS, READING

logger = logging.getLogger(__name__)
LOGGER = logging.getLogger("goodbot_connectors.slack.sdk")
"""For slack_sdk and bolt; see `_Quiet`."""

_TOKEN_IS_WRONG = {
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "not_allowed_token_type",
    "user_removed_from_team",
}
_TRY_AGAIN = {
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "server_error",
    "rollup_error",
    "accesslimited",
}
SLACK = "https://slack.com/api/"
_HOOKS = "https://hooks.slack.com/"
_TRIES = 4
_LONGEST_PAUSE = 60.0
_SECONDS = 30.0


class RefusedError(ConnectorError):
    """Slack said no. `code` is its word for why: `channel_not_found`."""

    def __init__(self, method: str, code: str, needed: str = "") -> None:
        self.code = code
        text = f"Slack refused {method}: {code}"
        if code == "missing_scope":
            text = (
                f"Slack refused {method}: the app lacks the scope {needed or METHODS[method]}; take "
                "the manifest of `goodbot manifest slack` and install the app again"
            )
        super().__init__(text)


class Api:
    """One bot account. Every call raises a `ConnectorError` of the fitting kind."""

    def __init__(
        self, bot: Secret, clock: Clock, dates: Dates, *, app: Secret | None = None, base: str = ""
    ) -> None:
        if not bot:
            raise FatalConnectorError(
                f"set {BOT_TOKEN} to the bot token of your app (xoxb-…); `goodbot connect slack` helps"
            )
        self._clock = clock
        self._bot, self._app = bot, app or Secret("")
        proxy = proxy_url(base or SLACK)
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_SECONDS), trace_configs=[dates.trace()]
        )
        self._client: Any = AsyncWebClient(
            token=bot.reveal(),
            base_url=base or SLACK,
            session=self._session,
            logger=LOGGER,
            retry_handlers=[],  # ours: slack_sdk's would post a message again after a reset
        )
        self._client.proxy = proxy  # it would take one of the environment for this machine, too
        self._elsewhere = base.removesuffix("/").removesuffix("api") if base else _HOOKS
        self.scopes: frozenset[str] = frozenset()
        """What the bot token may, as Slack said with the last answer."""

    async def open(self) -> BotIdentity:
        """auth.test: who we are."""
        me = await self.call("auth.test")
        team = string(me, "team_id")
        return BotIdentity(
            user=string(me, "user_id"),
            team=team,
            bot=string(me, "bot_id"),
            name=string(me, "user"),
            workspace=string(me, "team"),
            url=string(me, "url"),
            enterprise=string(me, "enterprise_id") or (team if team.startswith("E") else ""),
            organisation_wide=me.get("is_enterprise_install") is True,
        )

    async def close(self) -> None:
        """Let go of the connections; idempotent."""
        await self._session.close()

    async def call(self, method: str, *, patient: bool = True, app: bool = False, **arguments: Any) -> Json:
        """One method, with arguments as Slack names them; those that are None are left out.

        When Slack asks for a pause, a `patient` call waits for that long, and a little longer by
        chance, a few times; nothing else is tried again here. `app` takes the app-level token.
        """
        for attempt in range(_TRIES):
            try:
                return await self._once(method, arguments, app=app)
            except FloodError as error:
                if not patient or attempt == _TRIES - 1 or error.retry_after > _LONGEST_PAUSE:
                    raise
                await self._clock.sleep(error.retry_after)
        raise AssertionError("unreachable")

    async def dismiss(self, response_url: str) -> None:
        """Take an ephemeral message away: only the address that came with a press of it can."""
        if not response_url.startswith((_HOOKS, self._elsewhere)):
            return
        try:
            body = {"delete_original": True}
            async with self._session.post(
                response_url, json=body, allow_redirects=False, proxy=proxy_url(response_url)
            ) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.info("slack: an offer stays where it was: %s", type(error).__name__)

    async def _once(self, method: str, arguments: Mapping[str, Any], *, app: bool) -> Json:
        if method not in METHODS:
            raise ConnectorError(f"{method} is not among the methods that the manifest covers")
        given = {name: value for name, value in arguments.items() if value is not None}
        headers = {"Authorization": f"Bearer {(self._app if app else self._bot).reveal()}"}
        try:
            if method in READING:
                response = await self._client.api_call(method, http_verb="GET", params=given, headers=headers)
            else:
                response = await self._client.api_call(method, json=given, headers=headers)
        except SlackApiError as error:
            raise _ours(method, error, APP_TOKEN if app else BOT_TOKEN) from None
        except (aiohttp.ClientError, TimeoutError, OSError, json.JSONDecodeError) as error:
            raise RetriableError(f"Slack cannot be reached: {type(error).__name__}") from None
        except SlackClientError as error:
            raise ConnectorError(f"{method} failed: {type(error).__name__}") from None
        if not app and (scopes := _header(response.headers, "x-oauth-scopes")):
            self.scopes = frozenset(scope.strip() for scope in scopes.split(","))
        return as_json(response.data)


def _ours(method: str, error: SlackApiError, variable: str) -> ConnectorError:
    """Slack's error as one of ours; `variable` is where the token came from."""
    response: Any = error.response
    headers: Any = getattr(response, "headers", {})
    data = as_json(getattr(response, "data", response))
    code = "".join(c for c in string(data, "error")[:80] if c.isascii() and (c.isalnum() or c in "_-"))
    status = getattr(response, "status_code", 200)
    if status == 429 or code in ("ratelimited", "rate_limited"):
        try:
            pause = float(_header(headers, "retry-after") or 1)
        except ValueError:
            pause = 1.0
        pause = jittered(min(max(pause, 0.0), 3600.0))
        return FloodError(f"Slack asks for a pause ({method})", retry_after=pause)
    if code in _TRY_AGAIN or status >= 500 or not code:
        return RetriableError(f"Slack failed: {code or status} ({method})")
    if code in _TOKEN_IS_WRONG:
        return FatalConnectorError(
            f"Slack does not take the token ({variable}): {code}; copy it again from api.slack.com/apps"
        )
    return RefusedError(method, code, string(data, "needed"))


def _header(headers: Any, name: str) -> str:
    """A header by its name in any case; slack_sdk gives a plain dict or aiohttp's."""
    found = [value for key, value in dict(headers).items() if str(key).lower() == name]
    return str(found[0]) if found else ""


class _Quiet(logging.Filter):
    """What slack_sdk and bolt log may quote messages, tickets and tokens: only its kind is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage().partition("(")[0].partition("{")[0].strip()
        record.msg, record.args, record.exc_info = f"slack_sdk: {text[:100]}", (), None
        return True


LOGGER.setLevel(logging.WARNING)  # its debug output holds every message
LOGGER.addFilter(_Quiet())
