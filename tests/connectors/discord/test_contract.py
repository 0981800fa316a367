# SPDX-License-Identifier: Apache-2.0
"""The Discord connector against the contract, with and without the message content intent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import ConnectorSpec
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.host import RecordingHost
from goodbot_fakes.discord import FakeDiscord, intents

from tests.connectors.discord import schema
from tests.connectors.discord.peer import DiscordPeer
from tests.support import require

BEAT = 0.1
"""Seconds between heartbeats, which tell how far the connector has stored."""


class TestDiscord(ConnectorContract):
    mentions = ("@everyone", "@here", "<@1001>", "<@&1001>")

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.discord"

    @pytest.fixture
    async def platform(self) -> AsyncIterator[DiscordPeer]:
        require("discord")
        async with FakeDiscord(heartbeat=BEAT) as discord:
            yield DiscordPeer(discord)
            schema.check_all(discord)

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: DiscordPeer, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        platform.host = host = RecordingHost(spec, state_dir=tmp_path, environ=platform.environ)
        yield host
        await host.close()


class TestDiscordWithMessageContent(TestDiscord):
    @pytest.fixture
    async def platform(self) -> AsyncIterator[DiscordPeer]:
        require("discord")
        async with FakeDiscord(heartbeat=BEAT) as discord:
            discord.application.privileged.add(intents.MESSAGE_CONTENT)
            yield DiscordPeer(discord, message_content=True)
            schema.check_all(discord)
