# SPDX-License-Identifier: Apache-2.0
"""The load run, small: nothing may be lost or doubled. How fast it is, nobody asserts here."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot_connectors import discord, slack, teams, telegram
from goodbot_fakes.discord import FakeDiscord
from goodbot_fakes.slack import FakeSlack
from goodbot_fakes.telegram import FakeTelegram

from tests.benchmarks import load
from tests.benchmarks.load import Platform
from tests.core.builders import Fake, check_store, until
from tests.end_to_end.beside import goodbot
from tests.support import require

RATE = 200
SECONDS = 2.0
PEOPLE: dict[str, int] = {"raters": 16, "answers": 20, "lessons": 8}

Open = Callable[[], contextlib.AbstractAsyncContextManager[Platform]]


@contextlib.asynccontextmanager
async def on_telegram() -> AsyncIterator[Platform]:
    require("telegram")
    from tests.benchmarks.load_telegram import TelegramLoad

    async with FakeTelegram() as fake:
        yield TelegramLoad(fake, **PEOPLE)


@contextlib.asynccontextmanager
async def on_slack() -> AsyncIterator[Platform]:
    require("slack_bolt")
    from tests.benchmarks.load_slack import SlackLoad

    async with FakeSlack() as fake:
        yield SlackLoad(fake, **PEOPLE)


@contextlib.asynccontextmanager
async def on_discord() -> AsyncIterator[Platform]:
    require("discord")
    from tests.benchmarks.load_discord import BEAT, DiscordLoad

    async with FakeDiscord(heartbeat=BEAT) as fake:
        yield DiscordLoad(fake, **PEOPLE)


@contextlib.asynccontextmanager
async def on_teams() -> AsyncIterator[Platform]:
    require("botbuilder.core")
    from goodbot_fakes.teams import FakeTeams

    from tests.benchmarks.load_teams import PACE, TeamsLoad

    async with FakeTeams(pace=PACE) as fake:
        yield TeamsLoad(fake, **PEOPLE)


@pytest.mark.parametrize(
    ("plugin", "open_"),
    [(telegram, on_telegram), (slack, on_slack), (discord, on_discord), (teams, on_teams)],
    ids=["telegram", "slack", "discord", "teams"],
)
async def test_two_hundred_ratings_a_second_while_it_trains(plugin: Any, open_: Open, tmp_path: Path) -> None:
    model, home = Fake(tmp_path / "fake"), tmp_path / "bot"
    async with (
        open_() as platform,
        goodbot(home, plugin, platform.section, platform.environ, fake=model) as app,
    ):
        await platform.prepare()
        await platform.teach(8)
        model.set(train="slow")
        await platform.train()
        await until(lambda: app.scheduler.training)
        done = await load.run(platform, home, rate=RATE, seconds=SECONDS)
        assert app.scheduler.training, "it has trained all the while"
        model.go()
        await until(lambda: not app.scheduler.training)
        await check_store(app.store)
    assert done.ratings == len(done.latencies) == RATE * SECONDS
    assert (done.lost, done.extra) == (0, 0)
