# SPDX-License-Identifier: Apache-2.0
"""A bare discord.py client on a fake Discord: shows that the fake is one, before any connector."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any
from unittest import mock

import discord as library
import yarl
from goodbot_fakes.discord import TOKEN, FakeDiscord


class Client(library.Client):
    """Notes what it is told."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"intents": library.Intents.default(), "guild_ready_timeout": 0.02, **options})
        self.messages: list[library.Message] = []
        self.raw: list[Any] = []
        self.interactions: list[library.Interaction[Any]] = []
        self.resumed = 0
        self.tree = library.app_commands.CommandTree(self)

    async def before_identify_hook(self, *_: Any, **__: Any) -> None:
        """No pause of five seconds."""

    async def on_message(self, message: library.Message) -> None:
        self.messages.append(message)

    async def on_raw_reaction_add(self, event: library.RawReactionActionEvent) -> None:
        self.raw.append(event)

    async def on_raw_reaction_remove(self, event: library.RawReactionActionEvent) -> None:
        self.raw.append(event)

    async def on_interaction(self, interaction: library.Interaction[Any]) -> None:
        self.interactions.append(interaction)

    async def on_resumed(self) -> None:
        self.resumed += 1


@contextlib.asynccontextmanager
async def connected(discord: FakeDiscord, *, token: str = TOKEN, **options: Any) -> AsyncGenerator[Client]:
    """A client that is ready."""
    with pointed(discord):
        async with Client(**options) as client:
            running = asyncio.create_task(client.start(token))
            ready = asyncio.create_task(client.wait_until_ready())
            await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                ready.cancel()
                await running
            try:
                yield client
            finally:
                await client.close()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


@contextlib.contextmanager
def pointed(discord: FakeDiscord) -> Any:
    """Let discord.py find the fake."""
    with (
        mock.patch.object(library.http.Route, "BASE", discord.api),
        mock.patch.object(library.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(discord.gateway_url)),
    ):
        yield
