# SPDX-License-Identifier: Apache-2.0
"""The connector behind its routes, and a plugin's calls to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from goodbot.api.events import CommandEvent, Event, MessageEvent, Outcome, Receipt
from goodbot.testing.connector_base import eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.openclaw import SPEC
from goodbot_connectors.openclaw.config import OpenClawSettings
from goodbot_connectors.openclaw.connector import OpenClawConnector


def event(type_: str, **more: Any) -> dict[str, Any]:
    """One of the plugin's events, as Ada's on Telegram."""
    own: dict[str, dict[str, Any]] = {
        "capture": {
            "name": "7",
            "messages": [{"role": "user", "content": "Hello?"}],
            "answer": "Hi.",
            "model": "local/m",
            "trace": "0af7651916cd43dd8448eb211c80319c",
        },
        "named": {"name": "7", "message": "8"},
        "rating": {"name": "7", "value": 1},
        "reaction": {"name": "7", "emoji": "👍", "added": True},
        "command": {"words": "status", "admin": False, "owner": False},
    }
    base = {
        "id": f"{type_}:1",
        "type": type_,
        "at": 1,
        "channel": "telegram",
        "account": "default",
        "chat": "42",
        "group": False,
        "sender": "42",
    }
    return base | own[type_] | more


class Plugin:
    """What calls; `host` is the core's place, `connector` who answers."""

    def __init__(
        self, host: RecordingHost, connector: OpenClawConnector, session: ClientSession, token: str
    ) -> None:
        self.host, self.connector, self.token = host, connector, token
        self._session = session

    async def post(self, *events: Any, **headers: str) -> tuple[int, Any]:
        """Status and body of a call with these events."""
        body = json.dumps({"events": list(events)})
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        async with self._session.post(
            f"{self.host.address}/v1/openclaw/events", data=body, headers=given | headers
        ) as answer:
            return answer.status, await answer.json()

    async def taken(self) -> None:
        """Returns when the core has an event."""

        async def there() -> bool:
            return bool(self.host.events)

        await eventually(there, 30)

    async def one(self, sent: Any) -> dict[str, Any]:
        """The receipt of one event."""
        status, body = await self.post(sent)
        assert status == 200, body
        [receipt] = body["receipts"]
        return receipt


@pytest.fixture
async def plugin(tmp_path: Path) -> AsyncIterator[Plugin]:
    state = tmp_path / "connectors" / "openclaw"
    state.mkdir(parents=True)
    host = RecordingHost(SPEC, state_dir=state)
    token = clients.create(tmp_path, "openclaw", "plugin", admin=True)
    connector = OpenClawConnector(host, OpenClawSettings())

    def answered(given: Event) -> Receipt:
        if isinstance(given, CommandEvent):  # done after the commit, as the core does
            said = Receipt(event_id=given.event_id, outcome=Outcome.ACCEPTED, text=f"{given.name}: done")
            host.spawn(connector.acknowledge(given, said), "acknowledge")
        outcome = Outcome.PAIRED if isinstance(given, MessageEvent) else Outcome.ACCEPTED
        return Receipt(event_id=given.event_id, outcome=outcome, turn="t1")

    host.answer = answered
    host.mount(connector)
    await connector.start()
    async with ClientSession() as session:
        yield Plugin(host, connector, session, token)
    await connector.stop()
    await host.close()
