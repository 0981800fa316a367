# SPDX-License-Identifier: Apache-2.0
"""The terminal connector against the contract of all connectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import Connector, ConnectorSpec
from goodbot.api.events import MessageEvent
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.connector_base import QUIET, build
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import PlatformDriver

from tests.connectors.terminal.peer import TerminalPeer


class TestTerminal(ConnectorContract):
    """What a terminal is not, is said where a test is overridden."""

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.terminal"

    @pytest.fixture
    async def platform(self, tmp_path: Path) -> AsyncIterator[PlatformDriver]:
        peer = TerminalPeer(tmp_path)
        yield peer
        await peer.close()

    async def test_people_are_told_apart_and_events_have_an_order(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """One person sits at a terminal."""
        for _ in range(3):
            await platform.say("hi")
        first, second, third = await host.received(MessageEvent, 3)
        assert first.user == second.user == third.user
        assert first.order < second.order < third.order

    async def test_nobody_is_mentioned(
        self, connector: Connector, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        pytest.skip("a terminal notifies nobody, whatever an answer says")

    async def test_a_restart_goes_on_after_the_last_commit(
        self, spec: ConnectorSpec, host: RecordingHost, platform: PlatformDriver
    ) -> None:
        """Without a cursor: a chat sends again what was not taken."""
        first = build(spec, host, platform)
        await first.start()
        await platform.say("before")
        await host.received(MessageEvent)
        await asyncio.sleep(QUIET)
        await first.stop()
        await platform.say("while it was down")
        second = build(spec, host, platform)
        await second.start()
        events = await host.received(MessageEvent, 2)
        await asyncio.sleep(QUIET)
        await second.stop()
        assert [event.text for event in events] == ["before", "while it was down"]
        assert len(host.events) == 2
