# SPDX-License-Identifier: Apache-2.0
"""`why ANSWER`: what one answer has taught, and which of its words are likelier since."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.rated import RatedTaught
from goodbot.base.errors import UsageError
from goodbot.commands.taught import words_told

from tests.core.builders import Bot, open_bot
from tests.core.commands.test_rated import user


async def taught(bot: Bot, turn: str, by: str = "owner") -> RatedTaught:
    return await bot.chat.host.taught(user(by), turn)


async def test_it_says_which_version_learnt_from_it_and_which_words_moved(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        trained = await bot.trained(1)
        turn = next(answer.turn for answer in bot.answers if answer.turn in trained)
        (other,) = [one.turn for one in bot.answers if one.turn not in trained][:1]
        found = await taught(bot, turn)
        assert "v1, " in found.told
        assert "it learnt from this answer as from a " in found.told
        assert "one, 1 of 6 answers." in found.told
        assert "In this answer v1 finds likelier than the base model: “" in found.told
        assert "finds less likely than the base model: “" in found.told
        assert (found.version, found.before) == (1, 0)
        assert (found.tokens[0][1], found.tokens[-1][1]) == (1.0, -1.0)
        whole = await bot.app.commands.execute(bot.chat.typed("why", turn))
        assert whole.later is not None
        assert (await whole.later()).text == found.told
        aside = await taught(bot, other)
        assert "kept aside" in aside.told
        assert (aside.version, aside.tokens) == (0, ())


async def test_what_no_version_learnt_from_says_so_and_others_are_told_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#team")
        answer = await bot.say("a question", channel="#team")
        await bot.react(answer, "👍")
        await bot.react(answer, "👎", user="rater")
        assert (await taught(bot, answer.turn)).version == 0
        for by, turn in (("rater", answer.turn), ("talker", answer.turn), ("owner", "nothing")):
            with pytest.raises(UsageError):
                await taught(bot, turn, by)
        for by, channel in (("rater", ""), ("owner", "#team")):
            told = await bot.command("why", answer.turn, user=by, **({"channel": channel} if channel else {}))
            assert "as an owner" in told
        secret = await bot.say("not for owners", user="talker")
        with pytest.raises(UsageError, match="no such answer"):
            await taught(bot, secret.turn)


def test_words_are_whole_and_small_changes_are_left_out() -> None:
    changes = [("Hel", 0.4), ("lo", 0.4), (",", 9.0), (" wor", -0.3), ("ld", 0.25), ("!", 0.0), (" no", -1.0)]
    assert words_told(changes, 2, 1) == [
        "In this answer v2 finds likelier than v1: “Hello”.",
        "In this answer v2 finds less likely than v1: “no”.",
    ]
    assert words_told([("a", 0.05)], 1, 0) == [
        "v1 finds no word of this answer much likelier, or less likely, than the base model."
    ]
