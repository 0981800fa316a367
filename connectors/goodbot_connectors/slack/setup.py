# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up on Slack, looking at it, and leaving it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from goodbot.api.setup import Check, ConnectorSetup, Identity, Manifest, Permission, Sketch, fail, ok, warn
from goodbot.api.texts import explained, pauses, say
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import ConnectorError, RetriableError

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.slack import manifest
from goodbot_connectors.slack.api import SLACK, Api, RefusedError
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackSettings
from goodbot_connectors.slack.identity import BotIdentity as Account

_LONGEST = 300
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_STARTS = {BOT_TOKEN: "xoxb-", APP_TOKEN: "xapp-"}
_WHERE = {
    BOT_TOKEN: "OAuth & Permissions, “Bot User OAuth Token”",
    APP_TOKEN: "Basic Information, “App-Level Tokens”",
    SIGNING_SECRET: "Basic Information, “Signing Secret”",
}
_MENU = ("Basic Information", "Install App", "OAuth & Permissions", "App Manifest")
"""Entries at the side of an app's pages."""
_APPS = "api.slack.com/apps"
_PAGE = partial(Sketch, address=_APPS, menu=_MENU)
_SOCKETS = "wss://wss-primary.slack.com"


class SlackSetup(ConnectorSetup):
    """One app in one workspace."""

    title = "Slack"
    guide = say("guide_slack")
    sketches = (
        _PAGE(line=2, here=_MENU[1], press="Install to Workspace"),
        _PAGE(line=3, here=_MENU[2], field="Bot User OAuth Token", value="xoxb-…", press="Copy"),
        _PAGE(line=4, here=_MENU[0], field="App-Level Tokens", value="xapp-…", press="Generate Token"),
        _PAGE(line=5, here=_MENU[0], field="Signing Secret", value="••••••••", press="Show"),
    )
    settings: SlackSettings
    clock: Clock = SystemClock()

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """What a secret cannot be. The value itself is never in the sentence."""
        value = value.strip()
        if not value:
            return phrase("tok_where", place=_place(name))
        if name == SIGNING_SECRET:
            hexadecimal = set(value) <= set("0123456789abcdef")
            return "" if hexadecimal and len(value) == 32 else phrase("sl_signing")
        start = _STARTS[name]
        if not value.startswith(start):
            other = next((n for n, s in _STARTS.items() if value.startswith(s)), "")
            if other:
                return phrase("sl_other", start=start, place=_WHERE[name])
            return phrase("sl_start", start=start, place=_WHERE[name])
        if not set(value) <= _WORD or not 20 <= len(value) <= _LONGEST:
            return phrase("tok_part")
        return ""

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """A member's id, as their profile shows it."""
        if value[:1] in ("U", "W") and value[1:].isalnum() and value.isascii() and value.isupper():
            return ""
        return phrase("sl_user")

    @classmethod
    def called(cls, name: str) -> str:
        """What Slack's pages call it."""
        what = {BOT_TOKEN: "Bot token (xoxb-…)", APP_TOKEN: "App-level token (xapp-…)"}
        return what.get(name, "Signing secret")

    def manifest(self) -> Manifest:
        """What Slack makes the app of; in HTTP mode there are addresses to be filled in first."""
        made = manifest.manifest(self.settings)
        return Manifest(
            text=manifest.to_yaml(made),
            file="slack-manifest.yaml",
            permissions=tuple(Permission(name=s, why=manifest.WHY[s]) for s in manifest.scopes()),
            link=manifest.NEW_APP if self._http else manifest.link(made),
            filled=not self._http,
        )

    def addresses(self) -> Sequence[str]:
        """Where Slack answers."""
        if self.settings.api_base:
            return (self.settings.api_base,)
        return (SLACK, _SOCKETS) if self.settings.mode == "socket" else (SLACK,)

    def listens(self) -> str:
        """Where the proxy brings Slack's requests, in HTTP mode."""
        return f"127.0.0.1:{self.settings.port}" if self._http else ""

    async def identify(self) -> Identity:
        """auth.test."""
        async with self._open() as (_, me):
            return _identity(me)

    async def examine(self) -> Sequence[Check]:
        """What the tokens may, and whether Slack can reach us."""
        async with self._open() as (api, _):
            checks = [_scopes(api.scopes)]
            checks.append(_http(self.settings) if self._http else await self._socket(api))
        return [*checks, *self._dates.checks(self.title)]

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Nothing that tokens can take away: the app, its messages and tabs are its owner's.

        Deleting it at api.slack.com/apps removes them all.
        """
        return ()

    @property
    def _http(self) -> bool:
        return self.settings.mode == "http"

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[tuple[Api, Account]]:
        self._dates = Dates(self.clock)
        api = Api(
            self.secrets.get(BOT_TOKEN),
            self.clock,
            self._dates,
            app=self.secrets.get(APP_TOKEN),
            base=self.settings.api_base,
        )
        try:
            yield api, await api.open()
        finally:
            await api.close()

    async def _socket(self, api: Api) -> Check:
        """apps.connections.open gives an address, which nobody uses then."""
        part = "slack app token"
        try:
            await api.call("apps.connections.open", app=True, patient=False)
        except RetriableError as error:
            return warn(part, str(error), phrase("look_later"))
        except RefusedError as error:
            if error.code == "missing_scope":
                text = phrase("sl_lacks", name=APP_TOKEN, permission=manifest.APP_SCOPE)
                fix = phrase("sl_another", place=_place(APP_TOKEN))
            else:
                text = phrase("sl_no_socket", why=error.code)
                fix = phrase("sl_socket_fix")
            return fail(part, text, fix)
        except ConnectorError as error:
            return fail(part, str(error), phrase("sl_copy", place=_place(APP_TOKEN)))
        return ok(part, phrase("sl_socket"))


def _place(token: str) -> str:
    """Where one finds it on Slack's pages."""
    return f"{_APPS}, {_WHERE[token]}"


def _identity(me: Account) -> Identity:
    link = f"https://app.slack.com/client/{me.team}/{me.user}"
    return Identity(account=me.account, name=f"@{me.name} in {me.workspace}", link=link)


def _scopes(granted: frozenset[str]) -> Check:
    part = "slack scopes"
    if not granted:
        return warn(part, phrase("sl_silent"), phrase("look_later"))
    if missing := [scope for scope in manifest.scopes() if scope not in granted]:
        purposes = [explained(scope, rephrased(manifest.WHY[scope]), here()) for scope in missing]
        text = phrase("sl_missing", what=pauses(here(), *purposes))
        return fail(part, text, phrase("sl_again"))
    return ok(part, phrase("sl_granted", count=len(manifest.scopes())))


def _http(settings: SlackSettings) -> Check:
    inside = f"http://127.0.0.1:{settings.port}{settings.path}"
    return ok("slack requests", phrase("sl_http", outside=f"https://…{settings.path}", inside=inside))
