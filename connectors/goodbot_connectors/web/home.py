# SPDX-License-Identifier: Apache-2.0
"""Where somebody begins: who owns the bot or rates on “Progress”, everybody else in the chat."""

from __future__ import annotations

from aiohttp import hdrs, web
from goodbot.api.connector import ConnectorHost

from goodbot_connectors.web import guard, normalize
from goodbot_connectors.web.guard import Handler
from goodbot_connectors.web.sessions import BrowserSessions


def of(host: ConnectorHost, user: str) -> str:
    """The path of their home."""
    return "/progress" if host.may_rate(normalize.user_ref(user)) else "/"


def leads(host: ConnectorHost, sessions: BrowserSessions) -> Handler:
    """To their home whoever is signed in, others to where one signs in."""

    async def home(request: web.Request) -> web.StreamResponse:
        user = sessions.user(guard.cookie(request))
        headers = {hdrs.LOCATION: of(host, user) if user else "/login", hdrs.CACHE_CONTROL: "no-store"}
        return web.Response(status=302, headers=headers)

    return home
