# SPDX-License-Identifier: Apache-2.0
"""A Discord for each test. What goes over its wires is held to Discord's OpenAPI document afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from goodbot_fakes.discord import FakeDiscord

from tests.connectors.discord import schema
from tests.support import require


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    """With nobody in it yet."""
    require("discord")
    async with FakeDiscord() as discord:
        yield discord
        schema.check_all(discord)
