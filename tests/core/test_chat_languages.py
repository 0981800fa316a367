# SPDX-License-Identifier: Apache-2.0
"""What chat commands answer is in the language of whoever typed them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import CommandEvent
from goodbot.api.texts import LANGUAGES, say
from goodbot.base.errors import UsageError
from goodbot.commands.base import Result
from goodbot.learning.evaluation import blind
from goodbot.store.comparisons import Tally

from tests.core.builders import Bot, open_bot
from tests.core.learning.evaluation.test_blind import AFTER, BEFORE

OTHERS = [language for language in LANGUAGES if language != "en"]


async def typed(bot: Bot, language: str, name: str, args: str = "") -> Result:
    """What an owner who reads that language is answered."""
    event: CommandEvent = bot.chat.typed(name, args)
    event = replace(event, user=replace(event.user, language=language))
    found = await bot.app.commands.execute(event)
    return await found.later() if found.later else found


@pytest.mark.parametrize("language", OTHERS)
async def test_versions_are_listed_in_the_language(tmp_path: Path, language: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        for name, args in (("adapters", ""), ("adapters", "show 1"), ("adapters", "pin 1")):
            english = (await typed(bot, "", name, args)).text
            told = (await typed(bot, language, name, args)).text
            same = set(english.splitlines()) & set(told.splitlines())
            assert all("better" in line for line in same), "the words of the check that is played here"
        assert (await typed(bot, language, "adapters", "unpin")).text.startswith(
            say("unpinned", language, version=1)
        )
        with pytest.raises(UsageError) as caught:
            await typed(bot, language, "adapters", "show x")
        assert str(caught.value) == say("wrong_version", language, word="'x'")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_private_chats_are_shared_in_the_language(tmp_path: Path, language: str) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await typed(bot, language, "share", "off")).text == say("unshared", language)
        with pytest.raises(UsageError) as caught:
            await typed(bot, language, "share")
        assert str(caught.value) == say("wrong_share", language)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_is_deleted_is_told_in_the_language(tmp_path: Path, language: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(1)
        asks = await typed(bot, language, "forget", "me")
        assert asks.text.startswith(say("ask_forget_me", language))
        assert [button.label for button in asks.offer] == [say("button_forget", language)]
        answers = say("count_answers", language, answers=1)
        ratings = say("count_ratings", language, count=1)
        told = (await typed(bot, language, "forget", "me yes")).text
        assert told.startswith(say("forgot", language, answers=answers, ratings=ratings))
        assert told.endswith(say("copies_delete", language))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_nothing_is_to_be_compared_in_the_language(tmp_path: Path, language: str) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await typed(bot, language, "compare")).text == say("compare_none", language)
        with pytest.raises(UsageError) as caught:
            await typed(bot, language, "compare", "what is this")
        assert str(caught.value) == say("wrong_compare", language)


@pytest.mark.parametrize("language", OTHERS)
def test_a_blind_question_is_asked_in_the_language(language: str) -> None:
    for asked in (AFTER, BEFORE):
        assert blind.invitation(asked, language) != blind.invitation(asked)
        for state, tally in (("lost", Tally(old=4)), ("passed", Tally(new=2, same=1))):
            told = blind.outcome(asked, tally, state, language)
            assert told not in ("", blind.outcome(asked, tally, state))
            assert "v7" in told


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("more", ["", "--details"])
async def test_what_a_training_would_be_is_told_in_the_language(
    tmp_path: Path, language: str, more: str
) -> None:
    async with open_bot(tmp_path) as bot:
        nothing = (await typed(bot, language, "train", f"--dry-run {more}")).text
        assert nothing.startswith(say("dry_nothing", language))
        await bot.rated(8)
        english = (await typed(bot, "", "train", f"--dry-run {more}")).text
        told = (await typed(bot, language, "train", f"--dry-run {more}")).text
        assert len(told.splitlines()) == len(english.splitlines())
        assert not set(english.splitlines()) & set(told.splitlines())
        assert bot.app.model.name in told


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "args", "key"),
    [
        ("notes", "", "notes_off"),
        ("thought", "", "no_thought"),
        ("channels", "", "channels_none"),
        ("people", "grant talker loopback:guest", "granted_as_talker"),
        ("people", "refuse loopback:stranger", "refused_person"),
        ("help", "", "help_rate"),
    ],
)
async def test_an_answer_is_in_the_language(
    tmp_path: Path, language: str, name: str, args: str, key: str
) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.say("Hello?")
        told = (await typed(bot, language, name, args)).text
        assert told.startswith(say(key, language, who=args.rpartition(" ")[2])), told


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "args", "key"),
    [
        ("notes", "please", "wrong_notes"),
        ("notes", "on", "wrong_notes_here"),
        ("channels", "please", "wrong_channels"),
        ("enable", "", "wrong_channel_here"),
        ("people", "please", "wrong_people"),
        ("unlink", "", "wrong_unlink"),
    ],
)
async def test_what_was_wrong_is_said_in_the_language(
    tmp_path: Path, language: str, name: str, args: str, key: str
) -> None:
    async with open_bot(tmp_path) as bot:
        with pytest.raises(UsageError) as caught:
            await typed(bot, language, name, args)
        assert str(caught.value) == say(key, language, word=args)
