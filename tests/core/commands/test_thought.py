# SPDX-License-Identifier: Apache-2.0
"""What a model thought before an answer: on request, for who asked for that answer and for owners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, UserRef

from tests.core.builders import GRANTS, add_turn, open_bot

THOUGHT = "They mean the colour of grass."
LAB = ChannelRef(connector="loopback", account="loopback", id="#lab", kind=ChannelKind.SHARED)
ASKED = UserRef(connector="loopback", account="loopback", id="talker")
SEES = {"talker": True, "owner": True, "rater": False, "stranger": False}
"""The stranger may talk in the shared channel, as anybody there."""


@pytest.mark.parametrize(
    ("args", "channel"), [("t", ""), ("t", "#lab"), ("", "#lab")], ids=["by id", "there by id", "the last"]
)
async def test_a_thought_is_for_who_asked_and_for_owners(args: str, channel: str, tmp_path: Path) -> None:
    async with open_bot(tmp_path, grants=replace(GRANTS, channels=("#lab",))) as bot:
        await add_turn(bot.store, "t", channel=LAB, talker=ASKED, response="Green.", thought=THOUGHT)
        told = {who: await bot.command("thought", args, user=who, channel=channel) for who in SEES}
        assert {who: THOUGHT in text for who, text in told.items()} == SEES
        assert told["talker"] == told["owner"] == THOUGHT
        assert "you have no answer here yet" in told["rater"], "as where there is none"
        if channel:
            assert told["stranger"] == told["rater"]


async def test_an_answer_without_a_thought_says_so(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert "you have no answer here yet" in await bot.command("thought")
        await add_turn(bot.store, "t")
        assert await bot.command("thought") == "It did not think before that answer."
        assert "you have no answer here yet" in await bot.command("thought", "nowhere")
