# SPDX-License-Identifier: Apache-2.0
"""A Teams for each test. What goes over its wires is held to Microsoft's types afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.testing.clock import VirtualClock

from tests.support import patience, require

QUICK: dict[str, Any] = {"ack": 2.0, "invoke": 2.0, "retries": (0.05, 0.1, 0.2, *[0.4] * 20)}
"""For tests of what is done, not of when."""
VIRTUAL = pytest.mark.parametrize("teams", ["virtual"], indirect=True)
"""For tests of when: time passes by `pass_time` only."""


async def pass_time(teams: Any, seconds: float) -> None:
    """Let virtual time pass in steps, and whoever slept act in between."""
    assert isinstance(teams.clock, VirtualClock)
    while seconds > 0:
        teams.clock.advance(min(0.25, seconds))
        seconds -= 0.25
        for _ in range(4):
            await asyncio.sleep(0)
    await asyncio.sleep(patience(0.01))


@pytest.fixture(scope="session")
def cards_are_teams_s() -> Iterator[None]:
    """Every card that any test has sent is checked at the end, all at once."""
    yield
    from tests.connectors.teams import schema

    if schema.seen and not schema.unavailable():
        schema.check_cards(map(json.loads, sorted(schema.seen)))


@pytest.fixture
async def teams(request: pytest.FixtureRequest, cards_are_teams_s: None) -> AsyncIterator[Any]:
    """Parametrize it with fields of another `Pace`, or with `VIRTUAL` time at Teams's own pace."""
    require("botbuilder.core")
    from goodbot_fakes.teams import FakeTeams, Pace

    from tests.connectors.teams import schema

    pace = getattr(request, "param", QUICK)
    virtual = pace == "virtual"
    clock = VirtualClock(waits=True) if virtual else None
    async with FakeTeams(clock=clock, pace=None if virtual else Pace(**pace)) as teams:
        yield teams
        if not schema.unavailable():
            schema.check_all(teams)


@pytest.fixture
async def peer(teams: Any) -> Any:
    from tests.connectors.teams.peer import TeamsPeer

    return TeamsPeer(teams)


@pytest.fixture
async def host(peer: Any, teams: Any, tmp_path: Path) -> AsyncIterator[Any]:
    """A core in memory, on Teams's clock."""
    from goodbot.testing.host import RecordingHost
    from goodbot_connectors.teams import SPEC

    host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ, clock=teams.clock)
    yield host
    await host.close()


@pytest.fixture
async def connector(host: Any, peer: Any) -> AsyncIterator[Any]:
    from goodbot.testing.connector_base import build
    from goodbot_connectors.teams import SPEC

    connector = build(SPEC, host, peer)
    await connector.start()
    yield connector
    await connector.stop()
