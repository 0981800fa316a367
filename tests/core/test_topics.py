# SPDX-License-Identifier: Apache-2.0
"""What questions are about: by the words that their answers take up, in any language, and always the same."""

from __future__ import annotations

import random
from pathlib import Path

from goodbot.base.topics import topics

from tests.core.builders import Bot, open_bot
from tests.core.commands.test_rated import questions, user

SUBJECTS = {"python": 0.3, "nudeln": 0.1, "погода": 0.05}
FILL = ["the", "what", "how", "can", "you", "tell", "about", "der", "die", "wie", "ist", "по", "как", "это"]


def made(count: int) -> tuple[list[str], list[str]]:
    """Questions about one thing or nothing, in filling words; seven of ten answers take the thing up."""
    drawn = random.Random(7)
    asked: list[str] = []
    told: list[str] = []
    for _ in range(count):
        about = next((word for word, share in SUBJECTS.items() if drawn.random() < share), "")
        asked.append(" ".join([*drawn.choices(FILL, k=8), about.title()]))
        told.append(" ".join([*drawn.choices(FILL, k=30), about if drawn.random() < 0.7 else ""]))
    return asked, told


def test_they_are_what_the_questions_are_about_and_no_filling_word() -> None:
    asked, told = made(1000)
    assert [*topics(asked, told)] == ["python", "nudeln", "погода"]
    held = [number for number, question in enumerate(asked) if "Nudeln" in question]
    assert topics(asked, told)["nudeln"] == held
    assert topics(asked, told) == topics(asked, told)
    assert topics([], []) == topics(["one"], ["one"]) == {}


async def rated_topics(bot: Bot) -> None:
    """Twelve rated answers, half of them about code, half about tea."""
    await bot.command("enable", channel="#team")
    for number in range(12):
        about = "code" if number < 6 else "tea"  # "instead" is none about tea
        answer = await bot.say(
            f"{number} about {about} {'instead' if number < 6 else 'please'}", channel="#team"
        )
        await bot.store.write(
            lambda db, id_=answer.turn, word=about: db.execute(
                "UPDATE turns SET response = ? WHERE id = ?", (f"I know {word}.", id_)
            )
        )
        await bot.react(answer, "👎" if number in (0, 1, 2, 7) else "👍")


async def test_an_owner_is_told_them_with_the_share_of_bad_and_others_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await rated_topics(bot)
        found = await bot.chat.host.topics(user("owner"))
        assert [(one.word, one.answers, round(one.bad, 2)) for one in found] == [
            ("code", 6, 0.5),
            ("tea", 6, 0.17),
        ]
        assert await questions(bot, topic="tea", rating="bad") == ["7 about tea please"]
        for by in ("rater", "talker"):
            assert [*await bot.chat.host.topics(user(by))] == []
