# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot on a fake model whose API answers on the loopback, and clients of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import goodbot_connectors.api
from goodbot.config import HttpConfig
from goodbot_connectors.kit.bridge import clients

from tests.core.builders import Bot, open_bot

ANSWER = {"messages": [{"role": "user", "content": "2 + 2?"}], "response": "4."}
Said = tuple[int, dict[str, Any]]


class Caller:
    """One client."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session, self.token = session, token

    async def ask(self, method: str, path: str, body: Any = None, key: str = "", **headers: str) -> Said:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        if key:
            given["Idempotency-Key"] = key
        sent = {} if body is None else {"json": body}
        async with self._session.request(method, path, headers=given, **sent) as response:
            return response.status, await response.json()

    async def post(self, path: str, body: Any, key: str = "") -> Said:
        return await self.ask("POST", path, body, key)

    async def get(self, path: str) -> Said:
        return await self.ask("GET", path)

    async def captured(self, **fields: Any) -> str:
        """The turn of an answer."""
        status, said = await self.post("/v1/turns", {**ANSWER, **fields})
        assert (status, said["outcome"]) == (201, "accepted"), said
        return said["turn"]


@dataclass(frozen=True, kw_only=True)
class Served:
    """It, its owner `me` with an admin token, and `ci`, which may rate, and `guest`, which may talk."""

    bot: Bot
    port: int
    me: Caller
    ci: Caller
    guest: Caller
    stranger: Caller


@contextlib.asynccontextmanager
async def served(home: Path, port: int, **training: Any) -> AsyncIterator[Served]:
    grants = {"owners": ["me"], "raters": ["ci"], "talkers": ["guest"]}
    more = training.pop("sections", {})
    sections = {"http": HttpConfig(port=port), "connectors": {"api": grants}, **more}
    names = ("me", "ci", "guest", "stranger")
    tokens = [clients.create(home / "bot", "api", name, admin=name == "me") for name in names]
    async with (
        open_bot(home, extra=(goodbot_connectors.api,), sections=sections, **training) as bot,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        me, ci, guest, stranger = (Caller(session, token) for token in tokens)
        yield Served(bot=bot, port=port, me=me, ci=ci, guest=guest, stranger=stranger)
