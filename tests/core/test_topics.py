# SPDX-License-Identifier: Apache-2.0
"""What questions are about: by the words that their answers take up, in any language, and always the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from goodbot.base.topics import holds, topics

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


CHINESE = (
    {"机器人": 0.3, "编程": 0.15, "天气": 0.1},
    ("请告诉我关于{}的事", "{}是什么", "怎么学习{}呢", "我想知道{}吗", "你好，今天聊聊{}吧"),
    ("好的，我们来看看{}，这很有用。", "{}是一个很大的话题。", "关于{}，可以这样说。"),
)
JAPANESE = (
    {"プログラミング": 0.3, "天気予報": 0.15, "料理": 0.1},
    ("{}について教えてください", "{}の作り方は何ですか", "おすすめの{}はありますか", "最近{}が気になります"),
    ("{}についてお答えします。", "はい、{}は楽しいですね。良い質問です。", "最近は{}が人気です。"),
)


@pytest.mark.parametrize(("subjects", "asks", "says"), [CHINESE, JAPANESE], ids=["Chinese", "Japanese"])
def test_they_are_found_where_no_spaces_stand_between_words(
    subjects: dict[str, float], asks: Sequence[str], says: Sequence[str]
) -> None:
    drawn = random.Random(7)
    asked: list[str] = []
    told: list[str] = []
    for _ in range(1000):
        about = next((word for word, share in subjects.items() if drawn.random() < share), "")
        asked.append(drawn.choice(asks).format(about))
        told.append(drawn.choice(says).format(about if drawn.random() < 0.7 else ""))
    found = topics(asked, told)
    assert [*found] == [*subjects]
    for word, numbers in found.items():
        assert numbers == [number for number, text in enumerate(asked) if word in text]
        assert all(holds(asked[number], word) for number in numbers)


@pytest.mark.parametrize(
    ("text", "word", "is_of_it"),
    [
        ("A cup of tea, please", "tea", True),
        ("Be steady", "tea", False),
        ("如何用Python编程", "python", True),
        ("如何用Python编程", "编程", True),
        ("如何用Python编程", "如用", False),
        ("天気予報は？", "予報", True),
        ("コーヒーの淹れ方", "コーヒー", True),
        ("コーヒーの淹れ方", "りんご", False),
        ("天" * 2000 + "気", "天気", False),
    ],
)
def test_what_is_of_a_topic(text: str, word: str, is_of_it: bool) -> None:
    assert holds(text, word) is is_of_it


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
