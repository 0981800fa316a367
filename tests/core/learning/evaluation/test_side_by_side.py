# SPDX-License-Identifier: Apache-2.0
"""`compare v6 v7 PROMPT`: both answers under their names; nobody else notices."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from goodbot.config import ServingConfig
from goodbot.learning.evaluation import side_by_side
from goodbot.store import settings

from tests.core.builders import Bot, open_bot, rows, until


async def with_two_versions(bot: Bot) -> None:
    for _ in range(2):
        await bot.rated(8)
        await bot.train()


async def test_it_shows_both_answers_with_their_names(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await with_two_versions(bot)
        before = await rows(bot.store, "SELECT count(*) FROM turns")
        text = await bot.command("compare", "v1 V2 How far\nis  it?")
        assert text == "v1:\nv1 says: How far\nis  it?\n\nv2:\nv2 says: How far\nis  it?"
        assert await bot.command("compare", "base 2 Hm?") == (
            "the base model:\nv0 says: Hm?\n\nv2:\nv2 says: Hm?"
        )
        assert await bot.command("compare", "v2 base Hm?") == (
            "v2:\nv2 says: Hm?\n\nthe base model:\nv0 says: Hm?"
        )
        assert set(bot.app.server._loaded) == {2}
        assert await rows(bot.store, "SELECT count(*) FROM turns") == before
        assert await rows(bot.store, "SELECT count(*) FROM pairs") == [(0,)]
        assert await bot.app.server.served() == 2


async def test_the_data_name_the_versions(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        result = await bot.app.commands.execute(bot.chat.typed("compare", "base v1 Hm?"))
        assert result.later is not None, "no other command waits for it"
        assert (await result.later()).data["answers"] == [
            {"version": 0, "text": "v0 says: Hm?"},
            {"version": 1, "text": "v1 says: Hm?"},
        ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("v1 v1 Hm?", "name two different versions"), ("v1 v9 Hm?", "there is no adapter v9")],
)
async def test_what_cannot_be_compared_is_said(tmp_path: Path, words: str, sentence: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        assert sentence in await bot.command("compare", words)


async def test_a_tainted_version_does_not_speak(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        await bot.train()
        await bot.command("pause")
        used = await bot.trained_by(1)
        await bot.command("undo", next(a.turn for a in answers if a.turn in used))
        assert "v1 is not to be used" in await bot.command("compare", "base v1 Hm?")


async def test_while_the_model_is_down_it_says_so(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.app.server.stop()
        assert "the model is not running" in await bot.command("compare", "base v1 Hm?")


async def test_it_gives_up_where_people_talk_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "_SECONDS", 0.2)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        bot.fake.set(generate="held")
        talking = asyncio.create_task(bot.say("word " * 40))
        await until(lambda: bot.app.follow_up_tasks.answering)
        assert "there was no quiet moment" in await bot.command("compare", "base v1 Hm?")
        bot.fake.set(generate="ok")
        assert (await talking).text


async def test_the_audit_trail_keeps_no_prompt(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections={"serving": ServingConfig(ask="never")}) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.command("compare", "base v1 a secret of mine")
        entries, whole = await bot.store.read(settings.audit)
        assert whole
        assert [entry.action for entry in entries][-1] == "compare"
        assert "secret" not in "".join(entry.detail for entry in entries)
