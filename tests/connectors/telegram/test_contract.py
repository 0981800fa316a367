# SPDX-License-Identifier: Apache-2.0
"""The Telegram connector against the contract, on somebody else's local Telegram.

That one knows no drafts: answers grow by edits here. `test_contract_fake` runs the same on ours.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import ConnectorSpec
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.host import RecordingHost

from tests.connectors.telegram.peer import TelegramPeer


class TestTelegram(ConnectorContract):
    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.telegram"

    @pytest.fixture
    async def platform(self, peer: TelegramPeer) -> TelegramPeer:
        return peer

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: TelegramPeer, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        platform.host = host = RecordingHost(spec, state_dir=tmp_path, environ=platform.environ)
        yield host
        await host.close()
