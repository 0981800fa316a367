# SPDX-License-Identifier: Apache-2.0
"""What a page shows of learning: to each what they may ask the bot for, in the same words."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from goodbot.api import progress
from goodbot.api.events import UserRef
from goodbot.api.overview import Overview
from goodbot.base.errors import UsageError

from tests.core.builders import Bot, open_bot, until

SHORTER = {
    "feature": "length",
    "word": "",
    "before": 100.0,
    "after": 62.0,
    "change": -0.38,
    "low": -0.5,
    "high": -0.2,
    "named": True,
}
TOLD = "My answers have changed: shorter (−38%)."


async def seen(bot: Bot, user: str = "owner", language: str = "") -> Overview:
    person = UserRef(connector="loopback", account="loopback", id=user, language=language)
    return await bot.chat.host.overview(person)


async def taught(bot: Bot) -> None:
    """A version that has learnt from the owner's and the rater's private questions."""
    bot.fake.set(learnt=[SHORTER])
    await bot.command("share", "on", user="rater")
    for number in range(2):
        theirs = await bot.say(f"the rater's secret {number}", user="rater")
        await bot.react(theirs, "👍", user="rater")
    for number in range(6):
        mine = await bot.say(f"the owner's secret {number}")
        await bot.react(mine, "👍" if number % 2 else "👎")
    await bot.train()


async def test_before_anything_is_rated(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        found = await seen(bot)
        assert (found.ratings, found.needed, found.versions) == (0, 8, [])
        assert found.next == "0 of 8 ratings, 8 more until the next training."
        assert found.answers == "The base model answers now."
        assert found.lesson is not None
        assert found.lesson.told == "Nothing is trained yet: the base model answers."
        assert (found.training, found.begun, found.paused) == (None, False, False)


async def test_an_owner_sees_versions_and_what_was_learnt(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await taught(bot)
        found = await seen(bot)
        assert found.answers == "v1 answers now."
        assert found.lesson is not None
        assert found.lesson.told == TOLD
        assert 0 < len(found.lesson.pairs) <= 3
        assert {pair.prompt[:-2] for pair in found.lesson.pairs} == {"the owner's secret"}
        german = await seen(bot, language="de")
        assert german.answers == "v1 antwortet jetzt."
        assert german.lesson is not None
        assert german.lesson.told.startswith("Meine Antworten haben sich geändert: ")
        assert german.next != found.next
        [base] = found.versions
        assert (base.version, base.good, base.rated, base.made_at, base.active) == (0, 5, 8, None, False)
        assert base.low < base.share == 5 / 8 < base.high
        await bot.react(await bot.say("one more"), "👍")
        assert [(one.version, one.active) for one in (await seen(bot)).versions] == [(0, False), (1, True)]
        await bot.command("adapters", "pin")
        pinned = (await seen(bot)).lesson
        assert pinned is not None
        assert pinned.pinned


async def test_a_rater_sees_what_why_tells_them_and_nobody_elses_words(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await taught(bot)
        found = await seen(bot, "rater")
        assert found.versions == []
        assert found.lesson is not None
        assert found.lesson.told == TOLD
        assert {pair.prompt[:-2] for pair in found.lesson.pairs} == {"the rater's secret"}
        said = json.dumps(asdict(found))
        assert "owner" not in said
        assert "loopback" not in said


async def test_a_talker_sees_what_status_tells_them_and_a_stranger_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await taught(bot)
        found = await seen(bot, "talker")
        assert (found.lesson, found.versions) == (None, [])
        assert found.needed == 8
        with pytest.raises(UsageError, match="may not talk"):
            await seen(bot, "stranger")


async def test_why_a_training_failed_is_for_owners(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(train="refuse")
        await bot.rated(8)
        await bot.train()
        for user in ("rater", "talker"):
            found = await seen(bot, user)
            assert "no better" not in found.next


async def test_the_loss_of_each_step_is_told_while_it_trains(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="steps", hold=3)
        await bot.command("train")
        await until(lambda: (bot.app.trainer.progress or {}).get("step") == 3)
        now = (await seen(bot, "rater")).training
        assert now is not None
        assert list(now.curve) == [(step, 0.25) for step in range(4)]
        bot.fake.set(hold=5)
        await until(lambda: (bot.app.trainer.progress or {}).get("step") == 5)
        now = (await seen(bot)).training
        assert now is not None
        assert now.curve[-1] == (5, 0.25)
        bot.fake.set(hold=None)
        await until(lambda: not bot.app.scheduler.training)
        assert (await seen(bot)).training is None


async def test_a_training_is_seen_while_it_goes_on_and_while_it_is_paused(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        now = (await seen(bot, "rater")).training
        assert now is not None
        assert now.steps == 2
        assert now.doing in [progress.phase({"phase": name}) for name in progress.PHASES]
        assert (await seen(bot)).begun
        await bot.command("pause")
        found = await seen(bot)
        assert (found.training, found.paused, found.begun) == (None, True, True)
        assert "training is paused" in found.next.lower()
        await bot.command("train", "stop")
        assert not (await seen(bot)).begun
