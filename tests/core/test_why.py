# SPDX-License-Identifier: Apache-2.0
"""`why`: what the version that answers was trained on, and what that changed for the asker."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CommandEvent, OrderKey
from goodbot.commands import why
from goodbot.commands.base import Result
from goodbot.daemon.app import App
from goodbot.store import news

from tests.core.builders import CHANNEL, GRANTS, OWNER, Bot, Fake, config, open_bot, plugins, rows, until

ROOM = "#room"


async def data(bot: Bot, **fields: Any) -> dict[str, Any]:
    """What `goodbot why --json` prints."""
    return dict((await result(bot.app, bot.chat.typed("why", **fields))).data)


async def result(app: App, event: CommandEvent) -> Result:
    found = await app.commands.execute(event)
    assert found.later is not None, "no other command waits for it"
    return await found.later()


async def test_while_nothing_is_trained_it_says_what_to_do(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        await bot.say("Hello?")
        text = await bot.command("why")
        assert text.startswith(
            "Nothing is trained yet: the base model answers. "
            "0 of 8 ratings, 8 more until the next training.\nReact 👍 or 👎"
        )
        assert await data(bot) == {
            "version": 0,
            "lineage": [],
            "comparison": [],
            "off": False,
            "waiting": None,
        }


async def test_it_tells_what_was_learnt_and_shows_before_and_after(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        lines = (await bot.command("why")).splitlines()
        day = r"\d{1,2} \w+ \d{4}"
        assert lines[0] == "v1 answers: base → v1."
        assert re.fullmatch(
            r"It learnt from 6 rated answers \(3 good, 3 bad\), given on "
            + day
            + r"; 2 more were kept to check it\.",
            lines[1],
        )
        assert lines[2:] == [
            "Why then: an owner asked for it.",
            "Safety check: better",
            "Your own questions, before and after:",
            "“question 7”",
            "  before  v0 says: question 7",
            "  v1      v1 says: question 7",
            "“question 6”",
            "  before  v0 says: question 6",
            "  v1      v1 says: question 6",
            "“question 5”",
            "  before  v0 says: question 5",
            "  v1      v1 says: question 5",
        ]
        assert all(len(line) <= 80 for line in lines[4:])


async def test_the_lineage_is_told_with_what_came_before(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        text = await bot.command("why")
        assert text.startswith("v2 answers: base → v1 → v2.\n")
        found = await data(bot)
        assert found["lineage"] == [1, 2]
        own, before = found["trained_on"], found["trained_on_before"]
        assert f"{own['good']} good, {own['bad']} bad" in text
        assert own["trained"] == own["good"] + own["bad"] == len(await bot.trained_by(2))
        assert before["trained"] == before["good"] + before["bad"] == 6
        assert "The versions before it learnt from 6 rated answers (3 good, 3 bad)." in text


async def test_nobody_sees_anothers_questions(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        await bot.say("the owner's secret")
        await bot.say("the rater's secret", user="rater")
        await bot.say("the rater in the room", user="rater", channel=ROOM)
        await bot.say("the owner in the room", channel=ROOM)
        await bot.rated(8, channel=ROOM)
        await bot.train()

        def asked(found: dict[str, Any]) -> list[str]:
            return [pair["prompt"] for pair in found["comparison"]]

        assert asked(await data(bot, user="rater")) == ["the rater's secret"]
        assert asked(await data(bot, user="rater", channel=ROOM)) == ["the rater in the room"]
        assert asked(await data(bot)) == ["the owner's secret"]
        assert asked(await data(bot, user="rater", channel="#other")) == []
        text = await bot.command("why", user="rater", channel=ROOM)
        assert "loopback:" not in text
        assert "owner in the room" not in text


async def test_a_person_without_questions_here_is_told_so(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        text = await bot.command("why", user="rater")
        assert text.endswith("Ask me something here, then `why` shows you before and after.")


async def test_the_same_question_is_shown_once_and_long_ones_are_cut(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        for _ in range(3):
            await bot.say("long\n\n" * 40)
        text = await bot.command("why")
        assert len([line for line in text.splitlines() if line.startswith("“long")]) == 1
        assert all(len(line) <= 80 for line in text.splitlines()[4:])
        assert "…" in text


async def test_what_goodbot_asked_of_the_model_is_no_question_of_theirs(tmp_path: Path) -> None:
    """Another answer was asked for by a button, in goodbot's words."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        answer = await bot.say("Why is the sky blue?")
        await bot.react(answer, "👎")
        await bot.chat.again(answer, "long")
        text = await bot.command("why")
        assert "“Why is the sky blue?”" in text
        assert "Answer again" not in text


async def test_while_off_the_base_model_answers(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.command("off")
        text = await bot.command("why")
        assert text.startswith(
            "goodbot is paused: the base model answers. v1 comes back with `resume`.\nIt learnt from 6"
        )
        assert "before and after" not in text


async def test_without_a_daemon_the_facts_are_told(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
    settings = config(tmp_path / "bot", Fake(tmp_path / "fake"))
    people = {"loopback": GRANTS}
    async with App.open(settings, plugins(), grants=people, serve=False) as app:
        event = CommandEvent(event_id="cli", order=OrderKey(1), user=OWNER, channel=CHANNEL, name="why")
        found = await result(app, event)
        assert found.text.startswith("v1 answers: base → v1.\n")
        assert found.text.endswith("While goodbot runs (`goodbot run`), it also shows before and after.")


async def test_a_server_that_fails_does_not_hide_the_facts(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        bot.fake.set(generate="die")
        text = await bot.command("why")
        assert text.startswith("v1 answers: base → v1.\n")
        assert "Before and after cannot be shown now: the sampler process ended" in text


async def test_it_ends_in_time_and_holds_no_other_command_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow this machine is: its time is over when this test says so."""
    timeout, ours = asyncio.timeout, list[asyncio.Timeout]()

    def limited(seconds: float | None) -> asyncio.Timeout:
        limit = timeout(seconds)
        if seconds == why._SECONDS:
            ours.append(limit)
        return limit

    monkeypatch.setattr(why, "_SECONDS", 3600.5)
    monkeypatch.setattr(asyncio, "timeout", limited)
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        release = asyncio.Event()
        bot.app.follow_up_tasks.spawn(_waits(release), "answer")  # somebody waits for an answer
        asking = asyncio.create_task(bot.chat.command("why"))
        await asyncio.sleep(0)
        assert "v1 answers" in await bot.command("status")
        await until(lambda: ours)
        assert not asking.done()
        ours[0].reschedule(asyncio.get_running_loop().time())
        text = (await asking).text
        assert text.endswith("There was time for 0 of 3 questions.")
        release.set()


async def _waits(release: asyncio.Event) -> None:
    await release.wait()


async def test_only_those_who_teach_may_ask(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("why", user="talker") == (
            "Only people that my owner has chosen can rate my answers."
        )
        assert await bot.command("why", user="stranger", channel=ROOM) == ""


# -- help


async def test_help_shows_what_one_may_do_here(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        talker = await bot.command("help", user="talker")
        rater = await bot.command("help", user="rater")
        owner = await bot.command("help")
        group = await bot.command("help", channel=ROOM)
        assert "/rl good" not in talker
        assert "/rl status" in talker
        assert "/rl why" in rater
        assert "/rl train" not in rater
        assert "/rl train" in owner
        assert "/rl train" not in group
        assert "/rl good" in group
        assert group.splitlines()[-1].startswith("Owners: `/rl enable`")
        assert max(map(len, owner.splitlines())) <= 100


async def test_an_answer_that_was_held_out_and_then_trained_counts_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        both = "SELECT turn FROM run_items GROUP BY turn HAVING count(*) > 1"
        assert await rows(bot.store, both), "the second run has trained on what the first held out"
        made_of = await bot.store.read(lambda db: news.material(db, [1, 2]))
        assert made_of.trained + made_of.held_out == made_of.good + made_of.bad + 3 == 16
