# SPDX-License-Identifier: Apache-2.0
"""The Telegram connector against the contract, on the fake Telegram that is shipped.

`test_contract` runs the same on somebody else's server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.api.connector import ConnectorSpec
from goodbot.testing.connector import ConnectorContract
from goodbot.testing.host import RecordingHost
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors.telegram.fake import Driver


class TestTelegram(ConnectorContract):
    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.telegram"

    @pytest.fixture
    async def platform(self, fake: FakeTelegram) -> Driver:
        return Driver(fake)

    @pytest.fixture
    async def host(
        self, spec: ConnectorSpec, platform: Driver, tmp_path: Path
    ) -> AsyncIterator[RecordingHost]:
        platform.host = host = RecordingHost(spec, state_dir=tmp_path, environ=platform.environ)
        yield host
        await host.close()
