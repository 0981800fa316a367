# SPDX-License-Identifier: Apache-2.0
"""What a model thought before an answer: on request, for who asked for that answer and for owners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.base.errors import GoodbotError
from goodbot.commands.runner import DeniedError

from tests.core.builders import GRANTS, Bot, add_turn, open_bot

THOUGHT = "They mean the colour of grass."
NONE_YET = "have no answer here yet: ask something first"
LAB = ChannelRef(connector="loopback", account="loopback", id="#lab", kind=ChannelKind.SHARED)
ASKED = UserRef(connector="loopback", account="loopback", id="talker")
SEES = {"talker": True, "owner": True, "rater": False, "stranger": False}
"""In the shared channel the stranger may talk, as anybody may there."""


async def told(bot: Bot, args: str, user: str, channel: str) -> str:
    """What that person is told, or why they are not."""
    try:
        done = await bot.app.commands.execute(bot.chat.typed("thought", args, user=user, channel=channel))
    except GoodbotError as error:
        return f"{type(error).__name__}: {error}"
    return done.text


@pytest.mark.parametrize(
    ("args", "channel"),
    [("t", ""), ("t", "#lab"), ("", "#lab")],
    ids=["by its id", "by its id there", "the last one there"],
)
async def test_a_thought_is_for_who_asked_and_for_owners(args: str, channel: str, tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=replace(GRANTS, channels=("#lab",))) as bot:
        await add_turn(bot.store, "t", channel=LAB, talker=ASKED, response="Green.", thought=THOUGHT)
        found = {user: await told(bot, args, user, channel) for user in SEES}
    assert {user: THOUGHT in text for user, text in found.items()} == SEES
    assert found["talker"] == found["owner"] == THOUGHT
    assert NONE_YET in found["rater"], "as where there is none"
    assert NONE_YET in found["stranger"] if channel else DeniedError.__name__ in found["stranger"]


async def test_where_nothing_was_thought_it_says_so(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert NONE_YET in await bot.command("thought")
        await add_turn(bot.store, "t")
        assert await bot.command("thought") == "It did not think before that answer."
        assert NONE_YET in await bot.command("thought", "nowhere")
