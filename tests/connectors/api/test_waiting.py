# SPDX-License-Identifier: Apache-2.0
"""One client that waits for much keeps nobody else out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.testing.host import RecordingHost
from goodbot_connectors.api import SPEC
from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.api.connector import ApiConnector
from goodbot_connectors.api.handlers import AT_ONCE
from goodbot_connectors.api.proxy import waiters
from goodbot_connectors.kit.bridge import clients

from tests.connectors.api.daemon import ANSWER
from tests.core.builders import until

Ask = Callable[..., Awaitable[tuple[int, str | None]]]


@contextlib.asynccontextmanager
async def asked(home: Path) -> AsyncIterator[tuple[RecordingHost, ApiConnector, Ask]]:
    """An API, and what a client's request is answered with: the status, and when to come again."""
    state = home / "connectors" / "api"
    state.mkdir(parents=True)
    tokens = {name: clients.create(home, "api", name) for name in ("ada", "bob")}
    host = RecordingHost(SPEC, state_dir=state)
    connector = ApiConnector(host, ApiSettings())
    host.mount(connector)
    await connector.start()
    async with aiohttp.ClientSession() as web:

        async def ask(name: str, method: str, path: str, body: Any) -> tuple[int, str | None]:
            headers = {"Authorization": f"Bearer {tokens[name]}"}
            async with web.request(method, host.address + path, json=body, headers=headers) as response:
                return response.status, response.headers.get("Retry-After")

        yield host, connector, ask
    await connector.stop()
    await host.close()


@pytest.mark.parametrize(
    ("method", "path", "body"), [("POST", "/v1/commands", {"name": "status"}), ("GET", "/v1/status", None)]
)
async def test_the_commands_of_one_client_leave_room_for_all_others(
    tmp_path: Path, method: str, path: str, body: dict[str, str] | None
) -> None:
    """Each is waited for up to 30 s: a token of a rater held all places of the port."""
    async with asked(tmp_path) as (host, connector, ask):
        waiting = [asyncio.create_task(ask("ada", method, path, body)) for _ in range(waiters.EACH)]
        await until(lambda: len(connector._waiting) == waiters.EACH)
        assert await ask("ada", method, path, body) == (429, "5")
        waiting.append(asyncio.create_task(ask("bob", method, path, body)))
        await until(lambda: len(connector._waiting) == waiters.EACH + 1)
        await connector.stop()
        assert {await one for one in waiting} == {(200, None)}
        assert len(host.attempts) == len(waiting)


async def test_what_one_client_sends_at_once_leaves_room_for_all_others(tmp_path: Path) -> None:
    """While the store is busy, say; and a crowd of quick requests is turned away by whose it is."""
    async with asked(tmp_path) as (host, _, ask):
        host.hold()
        turn = ("POST", "/v1/turns", ANSWER)
        waiting = [asyncio.create_task(ask("ada", *turn)) for _ in range(AT_ONCE)]
        await until(lambda: len(host.attempts) == AT_ONCE)
        assert await ask("ada", *turn) == (429, "1")
        waiting.append(asyncio.create_task(ask("bob", *turn)))
        await until(lambda: len(host.attempts) == AT_ONCE + 1)
        host.release()
        assert {await one for one in waiting} == {(201, None)}
        assert await ask("ada", *turn) == (201, None)
