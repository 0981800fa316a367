# SPDX-License-Identifier: Apache-2.0
"""A clock that is not the platform's is told: by the doctor, and while goodbot runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.connector import Connector
from goodbot.api.setup import CheckState
from goodbot.base.clock import SystemClock
from goodbot.config.secrets import Secrets
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import build, load_spec
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.dates import Dates
from goodbot_fakes.discord import FakeDiscord
from goodbot_fakes.slack import FakeSlack
from goodbot_fakes.teams import FakeTeams
from goodbot_fakes.telegram import FakeTelegram

from tests.connectors.proxying import PLATFORMS
from tests.support import require

AHEAD = 180.0


def test_a_platforms_clock_goes_on_though_ours_is_set() -> None:
    clock = VirtualClock()
    dates = Dates(clock)
    assert dates.now() == clock.now(), "nothing was told yet"
    dates.take("Sat, 01 Jan 2028 00:00:00 GMT")
    clock.jump(-86400)
    clock.advance(90.5)
    assert dates.now_ms() == 1_830_297_690_500


@asynccontextmanager
async def platform(name: str, clock: SystemClock) -> AsyncGenerator[Any]:
    """A driver of the fake, whose clock is this one."""
    if name == "slack":
        from tests.connectors.slack.peer import SlackPeer

        async with FakeSlack(clock=clock) as slack:
            yield SlackPeer(slack)
    elif name == "discord":
        from tests.connectors.discord.peer import DiscordPeer

        async with FakeDiscord(clock=clock) as discord:
            yield DiscordPeer(discord)
    elif name == "telegram":
        from tests.connectors.telegram.fake import Driver

        async with FakeTelegram(clock=clock) as telegram:
            yield Driver(telegram)
    else:
        from tests.connectors.teams.peer import TeamsPeer

        async with FakeTeams(clock=clock) as teams:
            yield TeamsPeer(teams)


class Ahead(SystemClock):
    def now(self) -> float:
        return super().now() + AHEAD


@pytest.mark.parametrize("name", list(PLATFORMS))
async def test_the_platforms_time_is_told_while_it_runs_and_by_the_doctor(name: str, tmp_path: Path) -> None:
    require(PLATFORMS[name])
    spec = load_spec(f"goodbot_connectors.{name}")
    async with platform(name, Ahead()) as driver:
        host = RecordingHost(spec, state_dir=tmp_path, environ=driver.environ)
        connector: Connector = build(spec, host, driver)
        await connector.start()
        await connector.stop()
        await host.close()
        assert host.told
        assert all(AHEAD - 30 < told - host.clock.now() < AHEAD + 30 for told in host.told[-1:])
        module, _, made = spec.setup.partition(":")
        setup = getattr(import_module(module), made)(Secrets(spec.secrets, driver.environ), driver.settings)
        setup.clock = VirtualClock(now=SystemClock().now())
        [clock] = [check for check in await setup.examine() if check.part == "clock"]
        assert clock.state is CheckState.WARN
        assert "s behind" in clock.text
        setup.clock = VirtualClock(now=SystemClock().now() + AHEAD)
        assert [check for check in await setup.examine() if check.part == "clock"] == []
