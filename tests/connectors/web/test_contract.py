# SPDX-License-Identifier: Apache-2.0
"""The browser against the contract of all connectors, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import Connector, ConnectorSpec
from goodbot.api.events import MessageEvent, Reply
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver

from tests.connectors.web.peer import WebPeer


class TestWeb(ConnectorContract):
    """What a browser is not, is said where a test is overridden."""

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.web"

    @pytest.fixture
    async def platform(self, peer: WebPeer) -> WebPeer:
        return peer

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: WebPeer, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        platform.host = host = RecordingHost(spec, state_dir=tmp_path)
        yield host
        await host.close()

    async def test_nobody_is_mentioned(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        pytest.skip("a page notifies nobody, whatever an answer says")

    async def test_each_thread_is_a_conversation_of_its_own(
        self, spec: ConnectorSpec, connector: Connector, host: RecordingHost, platform: WebPeer
    ) -> None:
        """There are only private chats here, so several in one of those."""
        for thread in ("one", "two", "one"):
            await platform.say("hello", thread=thread)
        first, other, again = await host.received(MessageEvent, 3)
        assert first.channel == again.channel
        assert first.channel.id == other.channel.id
        assert first.channel.thread != other.channel.thread
        await connector.send(other.channel, Reply(text="In two.", reply_to=other.message_id))
        await connector.stream(again.channel, again.message_id).finish(Reply(text="In one."))
        for thread in ("one", "two"):
            shown = [e["text"] for e in await platform.entries("ada", thread) if e["by"] == "bot"]
            assert shown == [f"In {thread}."]
