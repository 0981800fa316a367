# SPDX-License-Identifier: Apache-2.0
"""Raters by the platform's own groups: who leaves one stops rating within five minutes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from goodbot.api.commands import Grant
from goodbot.api.events import Outcome
from goodbot.api.texts import reworded
from goodbot.base.errors import ConfigError
from goodbot.config import Grants, parse
from goodbot.daemon.connectors import configured_grants
from goodbot.daemon.http import readiness
from goodbot.testing import VirtualClock
from goodbot_connectors.terminal import SPEC

from tests.core.builders import Bot, open_bot, until
from tests.security.test_people import user

MODS = Grants(owners=("owner",), rater_groups=("mods",))


async def may_rate(bot: Bot, who: str) -> bool:
    return bot.app.authorization.may(user(who), Grant.RATE)


async def test_members_may_rate_and_nobody_else(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=MODS) as bot:
        bot.chat.groups = {"mods": {"grace"}, "others": {"eve"}}
        assert await bot.app.groups.refresh("loopback")
        answer = await bot.say("Hello?")
        assert (await bot.react(answer, "👍", user="grace")).outcome is Outcome.ACCEPTED
        assert (await bot.react(answer, "👎", user="eve")).outcome is Outcome.DENIED
        assert await bot.labels(answer) == {"loopback:grace": 1.0}
        assert "off" not in await bot.command("pause", user="grace")  # a rater owns nothing


async def test_who_is_taken_out_loses_the_grant_within_five_minutes(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, grants=MODS, clock=clock) as bot:
        bot.chat.groups = {"mods": {"grace"}}
        await bot.app.groups.refresh("loopback")
        assert await may_rate(bot, "grace")
        bot.chat.groups = {"mods": {"ada"}}
        for _ in range(5):
            clock.advance(60)
            await asyncio.sleep(0.01)

        async def gone() -> bool:
            return not await may_rate(bot, "grace")

        await until(gone)
        assert await may_rate(bot, "ada")


async def test_a_platform_that_does_not_tell_is_believed_for_five_minutes_and_no_longer(
    tmp_path: Path,
) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, grants=MODS, clock=clock) as bot:
        bot.chat.groups = {"mods": {"grace"}}
        await bot.app.groups.refresh("loopback")
        bot.chat.groups = {}  # it knows of no such group any more
        assert not await bot.app.groups.refresh("loopback")
        assert await may_rate(bot, "grace")
        clock.advance(299)
        assert await may_rate(bot, "grace")
        clock.advance(2)
        assert not await may_rate(bot, "grace")
        bot.chat.groups = {"mods": {"grace"}}
        assert await bot.app.groups.refresh("loopback")
        assert await may_rate(bot, "grace")


async def test_26_11_whose_ratings_end_by_that_is_seen_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Members' reactions vanished, and nothing anywhere said why."""
    async with open_bot(tmp_path, grants=MODS, clock=VirtualClock(waits=True)) as bot:
        bot.chat.groups = {"mods": {"grace"}}
        assert await bot.app.groups.refresh("loopback")
        caplog.clear()
        bot.chat.groups = {}
        for _ in range(3):
            assert not await bot.app.groups.refresh("loopback")
        assert "loopback.rater_groups: the platform does not say who is in" in await bot.command("status")
        states = (await bot.status())["connectors"]
        assert states["loopback"] == "running"
        assert reworded(states["loopback.rater_groups"], "de").startswith("die Plattform sagt nicht")
        assert (await readiness.parts(bot.app))["loopback"] == "down"
        said = [record.getMessage() for record in caplog.records if "rater_groups" in record.getMessage()]
        assert len(said) == 1
        bot.chat.groups = {"mods": {"grace"}}
        assert await bot.app.groups.refresh("loopback")
        assert "rater_groups" not in await bot.command("status")
        assert (await readiness.parts(bot.app))["loopback"] == "ok"


async def test_a_platform_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=MODS) as bot:

        async def hangs(group: str) -> frozenset[str]:
            await asyncio.Event().wait()
            return frozenset()

        bot.chat.members = hangs  # type: ignore[method-assign]
        task = asyncio.create_task(bot.app.groups.refresh("loopback"))
        assert (await bot.say("Hello?")).turn
        task.cancel()


def test_a_connector_without_groups_refuses_them_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[connectors.terminal]\nrater_groups = ["mods"]\n')
    config = parse(path.read_text(), home=tmp_path, path=path)
    with pytest.raises(ConfigError, match=r"config.toml:2: terminal has no groups"):
        configured_grants(config, {"terminal": SPEC})
