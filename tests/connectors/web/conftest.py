# SPDX-License-Identifier: Apache-2.0
"""Pages and a browser for each test that wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.connectors.web.browsing import Person, launched, person
from tests.connectors.web.peer import WebPeer
from tests.connectors.web.scripted import Scripted, scripted


@pytest.fixture
async def peer() -> AsyncIterator[WebPeer]:
    peer = WebPeer()
    yield peer
    await peer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Any]:
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def bot(tmp_path: Path) -> AsyncIterator[Scripted]:
    async with scripted(tmp_path) as bot:
        yield bot
        assert bot.failures == []


@pytest_asyncio.fixture(loop_scope="module")
async def ada(chromium: Any, bot: Scripted) -> AsyncIterator[Person]:
    """Signed in, at the chat."""
    async with person(chromium) as ada:
        await ada.come_back(bot, "ada")
        yield ada
