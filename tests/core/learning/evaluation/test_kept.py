# SPDX-License-Identifier: Apache-2.0
"""Choices are kept as preference pairs: exported, forgotten with the person, summed up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from goodbot.config import Grants
from goodbot.learning.evaluation import report
from goodbot.store import acceptance, turns
from goodbot.store.acceptance import Acceptance

from tests.core.builders import Bot, open_bot, rows
from tests.core.learning.evaluation.asking import Later, asked, current, letter, open_asking, prefer, states

WEEK = 7 * 86400.0


async def compared(bot: Bot, version: int = 1, count: int = 1) -> None:
    """A round, its question, and choices for one version."""
    await bot.rated(8)
    await bot.train()
    [question] = await asked(bot)
    await prefer(bot, version, count, question)


async def test_a_choice_is_exported_with_both_answers(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await bot.say("never rated")
        await compared(bot, count=3)  # first the two that are held out, then this one
        result = await bot.app.commands.execute(bot.chat.typed("export"))
        lines = [json.loads(line) for line in Path(result.data["path"]).read_text().splitlines()]
        chosen = [(line, choice) for line in lines for choice in line["choices"]]
        assert len(chosen) == 3
        for line, choice in chosen:
            words = line["messages"][-1]["content"]
            assert choice["answers"] == [
                {
                    "version": v,
                    "text": f"v{v} says: {words}",
                    "tokens": [3, 4],
                    "logprobs": [-0.5, -0.25],
                    "lifts": [],
                }
                for v in (0, 1)
            ]
            assert (choice["preferred"], choice["by"]) == (1, "loopback:owner")
            assert choice["prompt_tokens"] == [1, 2]
            drawn = bot.app.sampling
            assert choice["temperature"] == drawn.temperature
            assert choice["filters"] == drawn.filters.told() == {"top_p": 0.9}
        assert any(line["messages"][-1]["content"] == "never rated" for line, _ in chosen), (
            "what is not learnt yet is asked first"
        )


async def test_choices_are_not_trained_on(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await compared(bot, version=0, count=1)
        await bot.command("compare", "same")
        used = await rows(bot.store, "SELECT count(*) FROM run_items WHERE run > 1")
        assert used == [(0,)], "nothing is trained on them yet"


async def test_forgetting_an_owner_takes_the_pairs_along(tmp_path: Path) -> None:
    people = Grants(owners=("owner", "second"), raters=(), talkers=())
    async with open_asking(tmp_path, grants=people) as bot:
        await bot.rated(8)
        await bot.say("a question of second", user="second")
        await bot.train()
        await asked(bot, 2)
        shown = await bot.command("compare", user="second")
        await bot.command("compare", letter(shown, 1), user="second")
        await bot.command("forget", "me", user="owner")
        await bot.command("forget", "me yes", user="owner")
        left = await rows(bot.store, "SELECT owner, chosen_by FROM pairs")
        assert left == [("loopback:second", "loopback:second")]
        assert await bot.app.ab_test.current() is None, "the version learnt from them, too"
        assert await states(bot) == ["superseded"]
        await bot.command("forget", "me", user="second")
        await bot.command("forget", "me yes", user="second")
        assert await rows(bot.store, "SELECT * FROM pairs") == []


async def test_words_of_somebody_forgotten_leave_the_answers_to_others(tmp_path: Path) -> None:
    """Both answers were given to a prompt that held them."""
    async with open_asking(tmp_path, history=4) as bot:
        await bot.command("enable", channel="#room")
        await bot.command("share", "on")
        await bot.say("Ada lives in a small house", user="rater", channel="#room")
        mine = await bot.say("and what did she say?", channel="#room")
        await bot.store.write(
            lambda db: db.execute(
                "UPDATE turns SET context = ? WHERE id = ?",
                (json.dumps([["gone", "loopback:rater"]]), mine.turn),
            )
        )
        await bot.store.write(
            lambda db: db.execute(
                "UPDATE turns SET messages = ? WHERE id = ?",
                (
                    json.dumps(
                        [
                            {"role": "user", "content": "Ada lives in a small house"},
                            {"role": "assistant", "content": "Yes."},
                            {"role": "user", "content": "and what did she say?"},
                        ]
                    ),
                    mine.turn,
                ),
            )
        )
        await bot.rated(8)
        await bot.train()
        await asked(bot)
        held = "SELECT count(*) FROM pairs WHERE turn = ?"
        assert await rows(bot.store, held, (mine.turn,)) == [(1,)]
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        assert await rows(bot.store, held, (mine.turn,)) == [(0,)]
        assert await bot.store.read(lambda db: turns.get(db, mine.turn)) is not None


async def test_what_was_compared_does_not_expire_and_what_was_skipped_does(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        first = await bot.say("skipped")
        second = await bot.say("compared")
        await bot.rated(8)
        await bot.train()
        await asked(bot)
        for word in ("same", "same", "a", "skip"):  # first the two that are held out
            await bot.command("compare", word)
        await bot.store.write(lambda db: turns.expire(db, bot.app.clock.now() + 1))
        assert await bot.store.read(lambda db: turns.get(db, first.turn)) is None
        assert await bot.store.read(lambda db: turns.get(db, second.turn)) is not None
        assert await rows(bot.store, "SELECT choice FROM pairs WHERE choice = 'skip'") == []


# -- what it adds up to


async def test_status_shows_acceptance_with_intervals_and_the_choices(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        [question] = await asked(bot)
        text = await bot.command("status")
        assert "the base model: 4 of 8 rated answers good\n" in text
        assert "v1 is compared: `compare`" in text
        await prefer(bot, 1, 3, question)
        await bot.react(await bot.say("one for v1"), "👍")
        text = await bot.command("status")
        assert "v1: 1 of 1 rated answer good\n" in text
        assert "asked blind: 3 for v1, 0 for the base model" in text
        data = await bot.status()
        assert [(one["version"], one["good"], one["rated"]) for one in data["acceptance"]] == [
            (1, 1, 1),
            (0, 4, 8),
        ]
        assert data["choices"][0]["tally"]["new"] == 3
        waiting = data["comparison"]
        assert (waiting["old"], waiting["new"], waiting["held"]) == (0, 1, False)
        assert "asked blind" not in await bot.command("status", user="rater")


async def test_ties_count_for_neither_and_opinions_are_counted_by_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        tied, good = await bot.say("a tie"), await bot.say("good")
        await bot.react(tied, "👍")
        await bot.react(tied, "👎", user="rater")
        await bot.react(good, "👍")
        await bot.react(good, "👍", user="rater")
        pool = bot.app.ab_test.pool
        found = await bot.store.read(lambda db: acceptance.by_version(db, pool))
        assert found == [Acceptance(version=0, good=1, rated=1)]


def test_an_interval_is_told_with_its_share() -> None:
    text = report.accepted(Acceptance(version=7, good=32, rated=41))
    assert text == "v7: 32 of 41 rated answers good (63% to 88%)"
    few = report.accepted(Acceptance(version=7, good=0, rated=1))
    assert few == "v7: 0 of 1 rated answer good", "0% to 79% says nothing"


def digests(bot: Bot) -> list[tuple[str, str]]:
    return [
        (said.message.channel.id, said.text) for said in bot.chat.news if said.text.startswith("Last week:")
    ]


async def test_once_a_week_owners_are_told_and_only_if_there_is_something(tmp_path: Path) -> None:
    clock = Later()
    people = Grants(owners=("owner", "second"), raters=("rater",), talkers=())
    async with open_asking(tmp_path, clock=clock, grants=people) as bot:
        week = bot.app.ab_test._week
        await compared(bot, count=2)
        await week.look()
        assert digests(bot) == [], "this week is not over"
        clock.ahead = WEEK
        await week.look()
        await week.look()
        assert sorted(who for who, _ in digests(bot)) == ["owner", "second"]
        _, text = digests(bot)[0]
        assert text.splitlines() == [
            "Last week:",
            "the base model: 4 of 8 rated answers good",
            "asked blind: 2 for v1, 0 for the base model",
        ]
    async with open_asking(tmp_path, clock=clock, grants=people) as bot:
        await bot.app.ab_test._week.look()
        assert digests(bot) == [], "a restart tells it no second time"
        clock.ahead = 2 * WEEK
        await bot.app.ab_test._week.look()
        assert digests(bot) == [], "nothing happened that week"


@pytest.mark.parametrize("word", ["same", "skip"])
async def test_same_and_skip_are_kept_as_such(tmp_path: Path, word: str) -> None:
    async with open_asking(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await asked(bot)
        for _ in range(5):
            said = await bot.command("compare", word)
        assert said == (
            "Noted. 0 for v1, 0 for the base model, 5 the same. v1 stays." if word == "same" else "Noted."
        )
        assert await current(bot) is None
        assert await states(bot) == ["passed"]
