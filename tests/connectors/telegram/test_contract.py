"""The Telegram connector against the contract, on a Telegram of its own."""

from __future__ import annotations

import pytest
from goodbot.testing.connector import ConnectorContract

from tests.connectors.telegram.peer import TelegramPeer


class TestTelegram(ConnectorContract):
    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.telegram"

    @pytest.fixture
    async def platform(self, peer: TelegramPeer) -> TelegramPeer:
        return peer
