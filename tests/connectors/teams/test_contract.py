# SPDX-License-Identifier: Apache-2.0
"""The Teams connector against the contract, with every token checked."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.testing.connector import ConnectorContract


class TestTeams(ConnectorContract):
    mentions = ("<at>bob</at>",)

    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_connectors.teams"

    @pytest.fixture
    async def platform(self, peer: Any) -> Any:
        return peer
