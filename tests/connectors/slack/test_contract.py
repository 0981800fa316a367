# SPDX-License-Identifier: Apache-2.0
"""The Slack connector against the contract, over Socket Mode and over signed HTTP requests."""

from __future__ import annotations

import dataclasses

import pytest
from goodbot.testing.connector import ConnectorContract
from goodbot_fakes.slack import FakeSlack

from tests.connectors.slack.peer import SlackPeer
from tests.support import free_port


class TestSlack(ConnectorContract):
    mentions = ("@everyone", "@channel", "@here", "<!here>", "<@U0ADA0001>")

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.slack"

    @pytest.fixture
    async def platform(self, peer: SlackPeer) -> SlackPeer:
        return peer


class TestSlackOverHttp(TestSlack):
    @pytest.fixture
    async def platform(self, slack: FakeSlack, peer: SlackPeer) -> SlackPeer:
        port = free_port()
        peer.settings = dataclasses.replace(peer.settings, mode="http", port=port)
        slack.app.socket_mode = False
        slack.app.request_url = f"http://127.0.0.1:{port}{peer.settings.path}"
        return peer
