# SPDX-License-Identifier: Apache-2.0
"""Setting goodbot up on Teams, looking at it, and leaving it."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Sequence
from functools import partial

import aiohttp
from goodbot.api.setup import (
    Check,
    ConnectorSetup,
    Identity,
    Manifest,
    Permission,
    Question,
    Sketch,
    fail,
    ok,
    warn,
)
from goodbot.api.texts import say
from goodbot.api.texts.terminal import phrase
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import ConnectorError, FatalConnectorError

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.teams import manifest
from goodbot_connectors.teams.config import APP_PASSWORD, TeamsSettings
from goodbot_connectors.teams.keys import METADATA
from goodbot_connectors.teams.tokens import AccessToken, endpoint
from goodbot_connectors.teams.wire import fetch

_SECONDS = aiohttp.ClientTimeout(total=10)
_LEAST = 16
"""Characters of a client secret; Microsoft's have forty."""
_ANSWERS = "https://smba.trafficmanager.net"
_UPLOAD = "https://teams.microsoft.com/l/app-management"
_MENU = ("Overview", "Configuration", "Channels")
"""Entries at the side of a bot's pages."""
_PORTAL = partial(Sketch, address="portal.azure.com")
_BOT = partial(_PORTAL, menu=_MENU)
_WHERE = "portal.azure.com, Configuration, “Manage Password”"


class TeamsSetup(ConnectorSetup):
    """One app registration with a bot."""

    title = "Microsoft Teams"
    guide = say("guide_teams")
    sketches = (
        _PORTAL(line=1, field="Azure Bot", value="goodbot", press="Create"),
        _BOT(
            line=2, here=_MENU[1], field="Microsoft App ID", value="6b00d807-60a0-…", press="Manage Password"
        ),
        _PORTAL(line=3, field="Value", value="Abc8Q~…", press="New client secret"),
        _BOT(line=5, here=_MENU[2], press="Microsoft Teams"),
    )
    questions = (
        Question(key="app_id", text="Microsoft App ID"),
        Question(key="tenant", text="App Tenant ID", optional=True),
    )
    settings: TeamsSettings
    clock: Clock = SystemClock()

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """What a client secret cannot be. The value itself is never in the sentence."""
        value = value.strip()
        if not value:
            return phrase("tok_where", place=_WHERE)
        if _is_guid(value):
            return phrase("tm_secret_id")
        if len(value) < _LEAST or not value.isascii() or not value.isprintable() or " " in value:
            return phrase("tok_part")
        return ""

    @classmethod
    def wrong_setting(cls, key: str, value: str) -> str:
        """Both ids are GUIDs."""
        if _is_guid(value):
            return ""
        return phrase("tm_guid", key=key)

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """What Teams calls a person towards one bot."""
        if value.startswith("29:") and value.isascii() and value.isprintable() and " " not in value:
            return ""
        return phrase("tm_user")

    @classmethod
    def called(cls, name: str) -> str:
        """What Microsoft's pages call it."""
        return "Client secret (its Value)"

    def manifest(self) -> Manifest:
        """The app package: what people add to Teams."""
        return Manifest(
            text=json.dumps(manifest.manifest(self.settings), indent=2, ensure_ascii=False),
            file=manifest.FILE,
            packed=manifest.package(self.settings),
            permissions=tuple(
                Permission(name=name, why=why)
                for name, why in (*manifest.WHY.items(), *manifest.PERMISSIONS.items())
            ),
            link=_UPLOAD,
            of_account=True,
        )

    def addresses(self) -> Sequence[str]:
        """Where Teams answers."""
        keys = self.settings.openid_metadata or METADATA
        return endpoint(self.settings), keys, *(self.settings.service_urls or (_ANSWERS,))

    def listens(self) -> str:
        """Where the proxy brings Teams's calls."""
        return f"127.0.0.1:{self.settings.port}"

    async def identify(self) -> Identity:
        """An access token: id, secret and tenant fit together."""
        if self.settings.insecure_local:
            return Identity(account="local", name=phrase("tm_playground"))
        async with self._session() as session:
            await self._token(session)
        id_ = self.settings.app_id
        link = f"https://teams.microsoft.com/l/chat/0/0?users=28:{id_}"
        return Identity(account=id_, name=f"app {id_}", link=link)

    async def examine(self) -> Sequence[Check]:
        """Whether calls are checked, the keys for that can be had, and where calls come in."""
        if self.settings.insecure_local:
            return [warn("teams authentication", phrase("tm_insecure"), phrase("tm_insecure_fix"))]
        async with self._session() as session:
            await self._token(session)
            checks = [await self._keys(session)]
        told = self._dates.checks(self.title)
        return [*checks, _kind(self.settings), _endpoint(self.settings), *told]

    async def _token(self, session: aiohttp.ClientSession) -> None:
        if not self.settings.app_id:
            raise FatalConnectorError(phrase("tm_no_app"))
        token = AccessToken(session, self.clock, self.settings, self.secrets.get(APP_PASSWORD))
        await token.get()

    async def _keys(self, session: aiohttp.ClientSession) -> Check:
        part = "teams keys"
        try:
            await fetch(session, self.settings.openid_metadata or METADATA)
        except ConnectorError as error:
            return fail(part, phrase("tm_keys_bad", why=str(error)), phrase("tm_keys_fix"))
        return ok(part, phrase("tm_keys"))

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncGenerator[aiohttp.ClientSession]:
        self._dates = Dates(self.clock)
        trace = self._dates.trace()
        async with aiohttp.ClientSession(timeout=_SECONDS, trace_configs=[trace]) as session:
            yield session


def _kind(settings: TeamsSettings) -> Check:
    part = "teams tenant"
    if settings.tenant:
        return ok(part, phrase("tm_tenant"))
    return warn(part, phrase("tm_no_tenant"), phrase("tm_no_tenant_fix"))


def _endpoint(settings: TeamsSettings) -> Check:
    inside = f"http://127.0.0.1:{settings.port}{settings.path}"
    return ok("teams requests", phrase("tm_http", outside=f"https://…{settings.path}", inside=inside))


def _is_guid(value: str) -> bool:
    try:
        return str(uuid.UUID(value)) == value.strip().lower()
    except ValueError:
        return False
