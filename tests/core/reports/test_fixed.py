# SPDX-License-Identifier: Apache-2.0
"""Fixed questions: pairs that differ in one thing and an owner's own, asked when somebody says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.report import FixedQuestion
from goodbot.base.errors import ConfigError
from goodbot.commands import fixed_questions
from goodbot.features.reports import pairs, plugin
from goodbot.features.reports.pairs import Pairs
from goodbot.features.reports.versions import VersionTable
from goodbot.store import fixed

from tests.core.builders import Bot, open_bot, rows
from tests.core.reports.made import answers, told

OWN = """
[[question]]
ask = "Which port does it listen on?"
right = ["8321", "port"]

[[question]]
ask = "Who wrote it?"
right = "nobody"

[[pair]]
about = "name"
question = "Greet {}."
one = "Ada"
other = "Bob"
"""


async def asked(bot: Bot, words: str = "--pairs") -> dict[str, Any]:
    """What a report says that asks first."""
    result = await bot.app.commands.execute(bot.chat.typed("report", words))
    assert result.later is not None, "other commands do not wait for it"
    return dict((await result.later()).data)


def test_of_those_that_ship_each_pair_differs_in_one_place(tmp_path: Path) -> None:
    found = fixed_questions.load(tmp_path)
    assert len({one.text for one in found}) == len(found) >= 16
    halves: dict[int, list[FixedQuestion]] = {}
    for one in found:
        halves.setdefault(one.pair, []).append(one)
    for first, second in halves.values():
        assert first.about == second.about != ""
        assert first.text.replace(first.value, "", 1) == second.text.replace(second.value, "", 1)


def test_an_owners_own_come_behind_them(tmp_path: Path) -> None:
    (tmp_path / fixed_questions.FILE).write_text(OWN, encoding="utf-8")
    *_, port, who, ada, bob = fixed_questions.load(tmp_path)
    assert (port.right, who.right, port.about) == (["8321", "port"], ["nobody"], "")
    assert [ada.text, bob.text, ada.about] == ["Greet Ada.", "Greet Bob.", "name"]
    assert ada.pair == bob.pair


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[question]]\nask = "a"', "needs right"),
        ('[[question]]\nask = "a"\nright = []', "needs right"),
        ('[[question]]\nask = ""\nright = "a"', "ask is a text of 1 to 2,000 characters"),
        ('[[question]]\nask = "a"\nright = [1]', "right is a text"),
        ('[question]\nask = "a"', r"written as \[\[question\]\]"),
        ('[[pair]]\nabout = "a"\nquestion = "no place"\none = "1"\nother = "2"', "needs {}"),
        ("[[quiz]]", "has no 'quiz'"),
        ("[[", "cannot be read"),
        ('[[question]]\nask = "a"\nright = "b"\n' * 200, "too many"),
    ],
)
def test_what_is_wrong_in_their_file_is_told_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / fixed_questions.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"questions\.toml.*{said}"):
        fixed_questions.load(tmp_path)


async def test_the_version_that_answers_is_asked_and_what_it_says_is_kept(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        (bot.app.config.home / fixed_questions.FILE).write_text(OWN, encoding="utf-8")
        data = await asked(bot)
        count = len(fixed_questions.load(bot.app.config.home))
        said = await bot.store.read(lambda db: fixed.of(db, bot.app.model.name))
        assert {number: len(of_one) for number, of_one in said.items()} == {0: count}
        assert said[0]["Greet Ada."] == "v0 says: Greet Ada."
        [base] = data["pairs"]["versions"]
        assert (base["version"], base["pairs"]) == (0, (count - 2) // 2)
        [own] = data["pairs"]["own"]
        assert own == {"version": 0, "right": 1, "asked": 2, "wrong": ["Who wrote it?"]}
        assert data["versions"]["versions"][0]["right"] == (1, 2)
        await bot.rated(8)
        await bot.train()
        assert [one["version"] for one in (await asked(bot, "pairs --pairs"))["pairs"]["versions"]] == [0, 1]


async def test_what_a_version_says_goes_with_it_and_when_anybody_is_forgotten(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        versions = "SELECT DISTINCT version FROM fixed_answers ORDER BY 1"
        model = bot.app.model.name

        async def keep(version: int) -> None:
            await bot.store.write(lambda db: fixed.keep(db, model, version, "Who?", "Somebody.", 1.0))

        await bot.rated(8)
        await bot.train()
        for version in (0, 1, 7):
            await keep(version)
        assert await rows(bot.store, versions) == [(0,), (1,)], "nothing of a version that there is not"
        await bot.say("hello", user="talker")
        for said in ("me", "me yes"):
            await bot.command("forget", said, user="talker")
        assert await rows(bot.store, versions) == [(0,)]
        await keep(1)
        await bot.command("pause")
        await bot.command("undo", next(iter(await bot.trained_by(1))))
        assert (await bot.app.registry.row(1)).tainted
        assert await rows(bot.store, versions) == [(0,)]
        await keep(1)
        assert await rows(bot.store, versions) == [(0,)], "an answer that comes too late"


async def test_how_long_somebody_waited_goes_with_the_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        answer = await bot.say("hello", user="rater")
        [(turn, seconds)] = await rows(bot.store, "SELECT turn, seconds FROM waits")
        assert (turn, seconds >= 0) == (answer.turn, True)
        result = await bot.app.commands.execute(bot.chat.typed("report", "versions"))
        [row] = dict(result.data)["versions"]["versions"]
        assert row["seconds"] == (seconds, seconds)
        for said in ("me", "me yes"):
            await bot.command("forget", said, user="rater")
        assert await rows(bot.store, "SELECT 1 FROM waits") == []


async def test_the_memory_of_a_training_is_in_the_table(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(plugin,)) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.say("and now?")
        result = await bot.app.commands.execute(bot.chat.typed("report", "versions"))
        assert [row["memory"] for row in dict(result.data)["versions"]["versions"]] == [None, 2_000_000_000]
        assert "in 2.0 GB of memory at most" in result.text
        shown = await bot.command("adapters", "show 1 --details")
        assert "loss: 0.1" in shown
        assert "peak_memory" not in shown, "how good it is has another place"


@pytest.mark.parametrize(
    ("text", "word", "there"),
    [
        ("It is 8.", "8", True),
        ("It is 80.", "8", False),
        ("180, or 8?", "8", True),
        ("PARIS", "Paris", True),
        ("comparison", "Paris", False),
        ("東京です", "東京", True),
        ("Straße", "strasse", True),
        ("", "a", False),
    ],
)
def test_a_right_answer_holds_a_word_whole(text: str, word: str, there: bool) -> None:
    assert pairs.holds(text, word) is there


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("我喜欢你的猫很可爱", "我喜欢你的狗很可爱", 0.8),
        ("我喜欢你的猫很可爱", "大家都这样说", 0.0),
        ("ein schönes Haus", "ein schönes Tier", 0.5),
        ("", "", 1.0),
    ],
)
def test_where_no_spaces_stand_between_words_characters_are_compared(
    one: str, other: str, alike: float
) -> None:
    assert pairs.likeness(one, other) == pytest.approx(alike)


def test_pairs_are_compared_by_their_words_and_the_least_alike_come_first() -> None:
    questions = [
        FixedQuestion(text=f"{about} {value}", about=about, value=value, pair=number)
        for number, about in enumerate(("age", "name"), 1)
        for value in ("one", "other")
    ]
    said = {
        "age one": "They are happy people",
        "age other": "They are happy people",
        "name one": "Something quite different",
        "name other": "Nothing like that at all, and much longer than the other one was: twice and more",
    }
    text, data = told(Pairs(), [], questions=questions, said={2: said})
    [row] = data["versions"]
    assert row["about"] == {"age": 1.0, "name": 0.0}
    assert (row["alike"], row["longer"], row["pairs"]) == (0.5, 1, 2)
    assert [one["about"] for one in data["pairs"]] == ["name", "age"]
    assert "50% of the words are in both answers (age 100%, name 0%); in 1 one answer" in text
    assert "No version has been asked yet." in told(Pairs(), [], questions=questions)[0]


def test_waits_are_told_by_their_half_and_their_ninety_fifth() -> None:
    made = [replace(one, version=2, seconds=float(n)) for n, one in enumerate(answers(1, 101))]
    text, data = told(VersionTable(), made)
    [two] = [row for row in data["versions"] if row["version"] == 2]
    assert two["seconds"] == (50.0, 95.0)
    assert "half of the waits up to 50.0 s, 95% up to 95.0 s" in text
