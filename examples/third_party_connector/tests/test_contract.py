# SPDX-License-Identifier: Apache-2.0
"""The connector against goodbot's contract: all that this file says is where it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from goodbot.testing import ConnectorContract

from tests.homeserver import Homeserver, running


class TestMatrixlike(ConnectorContract):
    @pytest.fixture
    def plugin(self) -> str:
        return "goodbot_matrixlike"

    @pytest.fixture
    async def platform(self) -> AsyncIterator[Homeserver]:
        async with running() as homeserver:
            yield homeserver
