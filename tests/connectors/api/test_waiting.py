# SPDX-License-Identifier: Apache-2.0
"""One client that waits for much keeps nobody else out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from goodbot.testing.host import RecordingHost
from goodbot_connectors.api import SPEC
from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.api.connector import ApiConnector
from goodbot_connectors.api.proxy import waiters
from goodbot_connectors.kit.bridge import clients

from tests.core.builders import until


@pytest.mark.parametrize(
    ("method", "path", "body"), [("POST", "/v1/commands", {"name": "status"}), ("GET", "/v1/status", None)]
)
async def test_the_commands_of_one_client_leave_room_for_all_others(
    tmp_path: Path, method: str, path: str, body: dict[str, str] | None
) -> None:
    """Each is waited for up to 30 s: a token of a rater held all places of the port."""
    state = tmp_path / "connectors" / "api"
    state.mkdir(parents=True)
    tokens = {name: clients.create(tmp_path, "api", name) for name in ("ada", "bob")}
    host = RecordingHost(SPEC, state_dir=state)
    connector = ApiConnector(host, ApiSettings())
    host.mount(connector)
    await connector.start()
    async with aiohttp.ClientSession() as web:

        async def ask(name: str) -> tuple[int, str | None]:
            headers = {"Authorization": f"Bearer {tokens[name]}"}
            async with web.request(method, host.address + path, json=body, headers=headers) as response:
                return response.status, response.headers.get("Retry-After")

        waiting = [asyncio.create_task(ask("ada")) for _ in range(waiters.EACH)]
        await until(lambda: len(connector._waiting) == waiters.EACH)
        assert await ask("ada") == (429, "5")
        waiting.append(asyncio.create_task(ask("bob")))
        await until(lambda: len(connector._waiting) == waiters.EACH + 1)
        await connector.stop()
        assert {await one for one in waiting} == {(200, None)}
    await host.close()
