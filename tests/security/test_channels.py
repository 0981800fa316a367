# SPDX-License-Identifier: Apache-2.0
"""Shared channels: on and off, from a chat, a terminal or the config, with one notice each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.base.errors import RetriableError
from goodbot.config import Grants
from goodbot.store import Store, channels
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, open_bot, rows, until

DAY = 86400.0


def notices(bot: Bot, channel: str = "#room") -> list[str]:
    return [said.text for said in bot.chat.news if said.message.channel.id == channel]


async def test_switching_on_posts_one_notice_with_all_that_counts(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        said = await bot.command("enable", channel="#room")
        assert "answer here" in said
        [notice] = notices(bot)
        for words in ("owner’s computer", "after 7 days", "Ratings by people that", "/rl forget me"):
            assert words in notice
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn
        assert "already" in await bot.command("enable", channel="#room")
        for _ in range(3):
            await bot.app.notices.post()
        assert len(notices(bot)) == 1
    async with open_bot(tmp_path) as bot:
        await bot.app.notices.post()
        assert notices(bot) == []
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn


async def test_off_is_off(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        assert "off there" in await bot.command("disable", channel="#room")
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn == ""
        assert "was not on" in await bot.command("disable", channel="#room")


async def test_off_and_on_again_repeats_the_notice_after_a_month_only(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.command("enable", channel="#room")
        clock.advance(29 * DAY)
        await bot.command("disable", channel="#room")
        await bot.command("enable", channel="#room")
        assert len(notices(bot)) == 1
        await bot.command("disable", channel="#room")
        clock.advance(2 * DAY)
        await bot.command("enable", channel="#room")
        assert len(notices(bot)) == 2


async def test_a_notice_of_a_time_to_come_is_repeated(tmp_path: Path) -> None:
    """It was posted before our clock was set back."""
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.command("enable", channel="#room")
        await bot.command("disable", channel="#room")
        clock.jump(-400 * DAY)
        await bot.command("enable", channel="#room")
        assert len(notices(bot)) == 2


async def test_a_notice_that_cannot_be_sent_is_sent_later(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        real = bot.chat.send

        async def fails(*args: Any) -> Any:
            raise RetriableError("not now")

        bot.chat.send = fails  # type: ignore[method-assign]
        assert "answer here" in await bot.command("enable", channel="#room")
        assert "as soon as the bot can" in await bot.command("channels")
        bot.chat.send = real  # type: ignore[method-assign]
        await bot.app.notices.post()
        assert len(notices(bot)) == 1


async def test_a_crash_after_the_notice_and_before_its_record_posts_it_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:

        async def dies(*args: Any) -> None:
            raise OSError("the process died")

        with monkeypatch.context() as patch:
            patch.setattr(channels, "set_noticed", dies)
            await bot.command("enable", channel="#room")
        assert notices(bot)  # two, where the start was looking for due ones at that moment
    async with open_bot(tmp_path) as bot:
        await until(lambda: notices(bot))
        for _ in range(3):
            await bot.app.notices.post()
        assert len(notices(bot)) == 1


async def test_many_at_once_post_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        room = ChannelRef(connector="loopback", account="loopback", id="#room", kind=ChannelKind.SHARED)
        await bot.store.write(lambda db: channels.enable(db, room, "loopback:owner", 0.0))
        await asyncio.gather(*[bot.app.notices.post() for _ in range(10)])
        assert len(notices(bot)) == 1


async def test_from_elsewhere_by_name(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert "answer here" in await bot.command("channels", "enable loopback:#room")
        assert len(notices(bot)) == 1
        assert "loopback:#room  since" in await bot.command("channels", "list")
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn
        assert "off there" in await bot.command("channels", "disable loopback:#room")
        assert "in no channel" in await bot.command("channels")


@pytest.mark.parametrize(
    "args",
    [
        "enable",
        "enable #room",
        "enable nowhere:#room",
        "enable loopback:",
        "toggle x:y",
        "enable loopback:#room now",
        "disable loopback:\u202eroom",
    ],
)
async def test_odd_words_are_told_and_change_nothing(tmp_path: Path, args: str) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("channels", args)
        assert await rows(bot.store, "SELECT * FROM channels") == []


async def test_what_a_terminal_switched_on_while_nothing_ran_gets_its_notice_at_the_start(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        pass
    store = await Store.open(tmp_path / "bot" / "goodbot.db")
    nameless = ChannelRef(connector="loopback", account="", id="#room", kind=ChannelKind.SHARED)
    await store.write(lambda db: channels.enable(db, nameless, "terminal:0", 0.0))
    await store.close()
    async with open_bot(tmp_path) as bot:
        await until(lambda: notices(bot))
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn
        assert "off there" in await bot.command("disable", channel="#room")


async def test_a_channel_of_the_config_is_on_has_a_notice_and_goes_with_the_config(tmp_path: Path) -> None:
    named = Grants(owners=("owner",), channels=("#room",))
    async with open_bot(tmp_path, grants=named) as bot:
        await until(lambda: notices(bot))
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn
        assert "take it out here" in await bot.command("disable", channel="#room")
        assert "loopback:#room" in await bot.command("channels")
        await bot.app.notices.post()
        assert len(notices(bot)) == 1
    async with open_bot(tmp_path, grants=Grants(owners=("owner",))) as bot:
        await bot.app.notices.post()
        assert "in no channel" in await bot.command("channels")
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn == ""


async def test_only_owners_switch(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for who in ("rater", "talker", "stranger"):
            said = await bot.command("enable", channel="#room", user=who)
            alone = await bot.command("channels", "enable loopback:#room", user=who)
            named = who != "stranger"
            assert said == ("`enable` is for the owners of this bot." if named else "")
            assert alone == ("`channels` is for the owners of this bot." if named else "")
        assert await rows(bot.store, "SELECT * FROM channels") == []
        assert notices(bot) == []


async def test_off_is_off_also_where_a_row_without_the_account_was_left(tmp_path: Path) -> None:
    """Switched on in a terminal, and in the chat before the connector's account was settled."""
    async with open_bot(tmp_path) as bot:
        nameless = ChannelRef(connector="loopback", account="", id="#room", kind=ChannelKind.SHARED)
        await bot.command("enable", channel="#room")
        await bot.store.write(lambda db: channels.enable(db, nameless, "terminal:0", 0.0))
        await bot.command("disable", channel="#room")
        assert (await bot.say("Hello?", user="stranger", channel="#room")).turn == ""
