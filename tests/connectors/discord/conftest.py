# SPDX-License-Identifier: Apache-2.0
"""A Discord for each test. What goes over its wires is held to Discord's OpenAPI document afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import Connector
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import SPEC
from goodbot_fakes.discord import FakeDiscord

from tests.connectors.discord import schema
from tests.connectors.discord.peer import DiscordPeer
from tests.support import require


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    """With nobody in it yet."""
    require("discord")
    async with FakeDiscord() as discord:
        yield discord
        schema.check_all(discord)


@pytest.fixture
def peer(discord: FakeDiscord) -> DiscordPeer:
    return DiscordPeer(discord)


@pytest.fixture
async def host(peer: DiscordPeer, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    peer.host = host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, peer: DiscordPeer) -> AsyncIterator[Connector]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()
