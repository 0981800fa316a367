# SPDX-License-Identifier: Apache-2.0
"""A Slack for each test. What goes over its wires is held to Slack's types afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.connector import Connector
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import build
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC
from goodbot_fakes.slack import FakeSlack, Pace

from tests.connectors.slack import schema
from tests.connectors.slack.peer import SlackPeer
from tests.support import patience, require

QUICK = Pace(ack=0.5, retries=(0.0, 0.3, 1.5))
"""For tests of what is done, not of when."""
VIRTUAL = pytest.mark.parametrize("slack", ["virtual"], indirect=True)
"""For tests of when: time passes by `pass_time` only."""


async def pass_time(slack: FakeSlack, seconds: float) -> None:
    """Let virtual time pass in steps, and whoever slept act in between."""
    assert isinstance(slack.clock, VirtualClock)
    while seconds > 0:
        slack.clock.advance(min(0.1, seconds))
        seconds -= 0.1
        for _ in range(4):
            await asyncio.sleep(0)
    await asyncio.sleep(patience(0.01))


@pytest.fixture
async def slack(request: pytest.FixtureRequest) -> AsyncIterator[FakeSlack]:
    """Parametrize it with another `Pace`, or with `VIRTUAL` time at Slack's own pace."""
    require("slack_sdk")
    pace: Pace | str = getattr(request, "param", QUICK)
    options: dict[str, Any] = {"pace": pace} if isinstance(pace, Pace) else {}
    clock = None if options else VirtualClock(waits=True)
    async with FakeSlack(clock=clock, **options) as slack:
        yield slack
        if not schema.unavailable():
            schema.check_all(slack)


@pytest.fixture
async def peer(slack: FakeSlack) -> SlackPeer:
    return SlackPeer(slack)


@pytest.fixture
async def host(peer: SlackPeer, slack: FakeSlack, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=slack.clock)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: RecordingHost, peer: SlackPeer) -> AsyncIterator[Connector]:
    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()
