# SPDX-License-Identifier: Apache-2.0
"""A crowd in a channel that is on: what waits is bounded, and ends when the channel is switched off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, MessageEvent, Outcome
from goodbot.config import Grants
from goodbot.conversation import under_way

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rows, until
from tests.core.test_dispatcher import message

GRANTS = Grants(owners=("owner",), raters=("rater",), talkers=("talker",))


def asked(number: int, who: str, place: str = "#room") -> MessageEvent:
    kind = ChannelKind.SHARED if place.startswith("#") else ChannelKind.PRIVATE
    channel = replace(CHANNEL, id=place, kind=kind, thread=str(number) if number else "")
    return message(f"{who} {number} {place}", user=replace(OWNER, id=who), channel=channel)


def held(bot: Bot) -> asyncio.Event:
    """Let no answer begin until this is set."""
    go, then = asyncio.Event(), bot.app.dispatcher._then

    async def waits(event: Any) -> None:
        await go.wait()
        await then.answer(event)

    bot.app.dispatcher._then = replace(then, answer=waits)
    return go


async def outcomes(bot: Bot, *events: MessageEvent) -> list[tuple[Outcome, bool]]:
    return [(one.outcome, bool(one.text)) for one in await bot.chat.host.submit(list(events))]


TAKEN, TOLD, SILENT = (Outcome.ACCEPTED, False), (Outcome.IGNORED, True), (Outcome.IGNORED, False)


async def test_p5_what_waits_when_its_channel_is_switched_off_is_not_answered(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("enable", channel="#room")
        go = held(bot)
        raid = [asked(n, f"raider{n}") for n in range(1, 9)]
        assert await outcomes(bot, *raid, asked(9, "talker", "talker")) == [TAKEN] * 9
        await bot.command("disable", channel="#room")
        await bot.command("people", "revoke loopback:talker")
        go.set()
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert await rows(bot.store, "SELECT DISTINCT channel FROM turns") == [("talker",)], (
            "the config's stays"
        )
        assert await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''") == []


async def test_p5_whose_right_was_taken_meanwhile_is_not_answered(tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("people", "grant talker loopback:guest")
        go = held(bot)
        assert await outcomes(bot, asked(1, "guest", "guest")) == [TAKEN]
        await bot.command("people", "revoke loopback:guest")
        go.set()
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert await rows(bot.store, "SELECT 1 FROM turns") == []


async def test_p5_a_crowd_is_told_early_and_once_in_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_way, "MOST_HERE", 3)
    monkeypatch.setattr(under_way, "MOST_IN_ALL", 5)
    async with open_bot(tmp_path, grants=GRANTS) as bot:
        await bot.command("enable", channel="#room")
        await bot.command("enable", channel="#other")
        go = held(bot)
        raid = [asked(n, f"raider{n}") for n in range(1, 7)]
        assert await outcomes(bot, *raid) == [TAKEN] * 3 + [TOLD] + [SILENT] * 2, "also of one commit"
        elsewhere = [asked(n, f"raider{n}", "#other") for n in range(11, 15)]
        assert await outcomes(bot, *elsewhere) == [TAKEN] * 2 + [TOLD] + [SILENT]
        assert await outcomes(bot, asked(21, "owner"), asked(22, "talker", "talker")) == [TAKEN, TOLD]
        [rated] = await bot.chat.host.submit([bot.chat.typed("good", user="rater", channel="#room")])
        assert rated.outcome is Outcome.ACCEPTED, "what teaches is never too much"
        go.set()
        await until(lambda: not bot.app.dispatcher._under_way._all)
        assert not bot.app.dispatcher._under_way._here
        assert await outcomes(bot, asked(31, "raider31")) == [TAKEN]
