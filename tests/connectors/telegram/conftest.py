# SPDX-License-Identifier: Apache-2.0
"""One Telegram server for all tests here; each test gets it empty, and a connector to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors.telegram.fake import check_conversation
from tests.connectors.telegram.peer import TelegramPeer, people, serve
from tests.support import patience, require

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a test's whole process may stand for longer than Telegram is ever waited for."""
    if find_spec("telegram"):
        from goodbot_connectors.telegram import client

        for step, seconds in client.PATIENCE.items():
            monkeypatch.setitem(client.PATIENCE, step, patience(seconds))


@pytest.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    """A Telegram of this project's own; all that it took and said is held to Telegram's types."""
    require("telegram")
    async with FakeTelegram() as fake:
        yield fake
        check_conversation(fake)


@pytest.fixture(scope="session")
def telegram_server() -> Iterator[tuple[int, dict[str, Any]]]:
    require("telegram")
    with serve() as server:
        yield server


@pytest.fixture
async def peer(telegram_server: tuple[int, dict[str, Any]]) -> AsyncIterator[TelegramPeer]:
    async with people(*telegram_server) as peer:
        yield peer


@pytest.fixture
async def host(peer: TelegramPeer, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
    yield host
    await host.close()


@pytest.fixture
async def connector(peer: TelegramPeer, host: RecordingHost) -> AsyncIterator[TelegramConnector]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield cast("TelegramConnector", connector)
    await connector.stop()
