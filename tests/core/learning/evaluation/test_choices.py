# SPDX-License-Identifier: Apache-2.0
"""A blind choice teaches: the answer that was preferred as a good one, the other as a bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import OrderKey
from goodbot.config import Grants
from goodbot.learning.evaluation import blind
from goodbot.store import acceptance, training_pool
from goodbot.store.comparisons import Pair

from tests.core.builders import Bot, check, open_bot, rows
from tests.core.exporting.made import records
from tests.core.learning.evaluation.asking import Later, asked, asked_untrained, open_asking, prefer
from tests.core.learning.evaluation.test_kept import compared
from tests.core.learning.training.test_words import items_of
from tests.security.test_linking import link


async def pairs(bot: Bot) -> Sequence[Pair]:
    """What the owner is asked."""
    question = await bot.app.ab_test.current()
    assert question is not None
    return await bot.app.ab_test.pairs(question, "loopback:owner")


async def items(bot: Bot, run: int = 2) -> dict[str, tuple[float, float]]:
    """Of the answers of blind questions, by turn what a run takes: reward and weight."""
    found = await rows(
        bot.store,
        "SELECT i.turn, i.reward, i.weight FROM run_items i JOIN turns t ON t.id = i.turn"
        " WHERE i.run = ? AND t.kind = 'choice'",
        (run,),
    )
    return {turn: (reward, weight) for turn, reward, weight in found}


async def learnt(bot: Bot) -> None:
    """A second round, none of which is held out."""
    await bot.rated(8)
    assert (await bot.train()).state == "activated"


def open_without_held_out(home: Path, **fields: Any) -> Any:
    return open_asking(home, **{"held_out": 0, **fields})


async def test_both_answers_of_a_choice_train_in_the_next_round(tmp_path: Path) -> None:
    """Beside ratings, half of the weight of one each, and counted as none."""
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot)
        assert (await bot.status())["ratings"] == 0
        await learnt(bot)
        assert await items(bot) == {"pair-1-new": (1.0, 0.5), "pair-1-old": (-1.0, 0.5)}
        assert (await bot.status())["ratings"] == 0, "they are used"
        await check(bot)


async def test_none_is_held_out_so_that_both_train_or_neither(tmp_path: Path) -> None:
    async with open_asking(tmp_path, held_out=7) as bot:
        await compared(bot)
        await learnt(bot)
        assert await items(bot) == {"pair-1-new": (1.0, 0.5), "pair-1-old": (-1.0, 0.5)}
        held = await rows(bot.store, "SELECT count(*) FROM run_items WHERE run = 2 AND split = 'held_out'")
        assert held == [(8,)], "all that were rated since, without the choice"


async def test_each_is_read_as_the_version_that_wrote_it_with_its_own_log_probs(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot)
        found = {item.id: item for item in await items_of(bot, tmp_path) if item.id.startswith("pair-")}
        assert {id_: item.version for id_, item in found.items()} == {"pair-1-old": 0, "pair-1-new": 1}
        for id_, item in found.items():
            assert (item.tokens, item.logprobs) == ((3, 4), (-0.5, -0.25))
            assert item.response.startswith("v1 says" if id_.endswith("new") else "v0 says")


@pytest.mark.parametrize("word", ["same", "skip"])
async def test_who_prefers_neither_teaches_nothing(tmp_path: Path, word: str) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await asked(bot)
        await bot.command("compare")
        await bot.command("compare", word)
        await learnt(bot)
        assert await items(bot) == {}


async def test_one_that_is_taken_back_is_asked_again_and_teaches_what_is_said_then(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot)
        again = await bot.command("compare", "undo")
        assert again.startswith("Your last choice is taken back.\n\nWhich is better? (1 of 5)")
        [question] = await asked(bot)
        await prefer(bot, 0, 1, question)
        await learnt(bot)
        assert await items(bot) == {"pair-1-new": (-1.0, 0.5), "pair-1-old": (1.0, 0.5)}
        await check(bot)


async def test_a_version_that_learnt_a_choice_which_is_taken_back_is_replaced(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot, count=5)
        await learnt(bot)
        assert len(await items(bot)) == 10
        await bot.command("compare", "undo")
        [first, second] = await bot.app.registry.rows()
        assert not first.tainted
        assert second.tainted
        assert (await bot.train()).state == "activated"
        run = (await bot.last_run()).id
        assert set(await items(bot, run)) == {
            f"pair-{n}-{which}" for n in (1, 2, 3, 4) for which in ("old", "new")
        }
        await check(bot)


async def test_b1_it_is_taken_back_from_another_account_of_the_same_person(tmp_path: Path) -> None:
    """It was told as done, and both answers trained on."""
    owners = Grants(owners=("owner", "boss"), raters=("rater",))
    async with open_without_held_out(tmp_path, grants=owners) as bot:
        await compared(bot)
        assert "one person now" in await link(bot, second="boss")
        assert (await bot.command("compare", "undo", user="boss")).startswith(
            "Your last choice is taken back"
        )
        assert await rows(bot.store, "SELECT * FROM labels WHERE turn GLOB 'pair-*'") == []
        await learnt(bot)
        assert await items(bot) == {}
        await check(bot)


async def test_nothing_is_taken_back_that_was_not_chosen(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        assert "chosen nothing" in await bot.command("compare", "undo")


async def test_b1_the_last_choice_is_taken_back_though_our_clock_was_set_back(tmp_path: Path) -> None:
    clock = Later()
    async with open_without_held_out(tmp_path, clock=clock) as bot:
        await compared(bot)
        clock.ahead = -600.0
        await bot.command("compare", "2 same")
        again = await bot.command("compare", "undo")
        assert again.startswith("Your last choice is taken back.\n\nWhich is better? (2 of 5)")
        assert await rows(bot.store, "SELECT id, choice FROM pairs WHERE choice <> ''") == [(1, "new")]


async def test_b1_f2_it_is_taken_back_though_the_platforms_clock_went_back(tmp_path: Path) -> None:
    """By that clock the undo came first: it was told as done, and both answers trained on as before."""
    async with open_bot(tmp_path) as bot:
        await asked_untrained(bot)
        for at, words, told, values in (
            (100, "1 a", "Noted.", {1.0: "a", -1.0: "b"}),
            (50, "undo", "Your last choice is taken back.", {}),
            (40, "1 b", "Noted.", {1.0: "b", -1.0: "a"}),
        ):
            event = replace(bot.chat.typed("compare", words), order=OrderKey(at))
            result = await bot.app.commands.execute(event)
            assert result.text.startswith(told)
            [pair] = [one for one in await pairs(bot) if one.id == 1]
            labels = await rows(bot.store, "SELECT value, turn FROM labels WHERE turn GLOB 'pair-*'")
            preferred = {"a": blind.choice(pair, "a"), "b": blind.choice(pair, "b")}
            assert dict(labels) == {value: f"pair-1-{preferred[word]}" for value, word in values.items()}


async def test_undo_is_of_the_last_answer_that_was_given(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot)
        answer = await bot.say("And now?")
        await bot.react(answer, "👎")
        [question] = await asked(bot)
        await prefer(bot, 1, 1, question)
        await bot.command("compare", "2 a")
        await bot.command("undo")
        assert await bot.labels(answer) == {}
        assert len(await rows(bot.store, "SELECT 1 FROM labels WHERE turn GLOB 'pair-*'")) == 4


async def test_who_does_not_share_teaches_nothing_by_a_choice(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path) as bot:
        await compared(bot)
        pool = bot.app.ab_test.pool
        found = await bot.store.read(lambda db: training_pool.candidates(db, pool))
        assert len(found) == 2
        await bot.command("share", "off")
        assert await bot.store.read(lambda db: training_pool.candidates(db, pool)) == []


async def test_forgetting_takes_a_choice_and_what_learnt_it(tmp_path: Path) -> None:
    grants = Grants(owners=("owner", "second"))
    async with open_without_held_out(tmp_path, grants=grants) as bot:
        await bot.rated(4)
        await bot.rated(4, user="second")
        await bot.train()
        question = next(one for one in await asked(bot, 2) if one.message.channel.id == "second")
        pair = question.buttons[0].split()[1]
        await bot.chat.press(question, question.buttons[0], user="second")
        await learnt(bot)
        assert set(await items(bot)) == {f"pair-{pair}-old", f"pair-{pair}-new"}
        await bot.command("forget", "loopback:second")
        await bot.command("forget", "loopback:second yes")
        assert await rows(bot.store, "SELECT id FROM turns WHERE kind = 'choice'") == []
        assert await rows(bot.store, "SELECT turn FROM events WHERE source = 'choice'") == []
        assert all(row.tainted for row in await bot.app.registry.rows())


async def test_nobody_can_tell_from_elsewhere_which_answer_is_whose(tmp_path: Path) -> None:
    """It is in no history, in no list of answers, and not among the ratings of a version."""
    async with open_without_held_out(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        [question] = await asked(bot)
        pool = bot.app.ab_test.pool

        async def told() -> list[Any]:
            shown = await bot.store.read(lambda db: acceptance.by_version(db, pool))
            exported = await bot.store.read(records)
            return [await bot.command("history"), shown, [line["id"] for line in exported if line["ratings"]]]

        before = await told()
        await prefer(bot, 1, 3, question)
        assert await told() == before


async def test_why_says_that_choices_were_learnt(tmp_path: Path) -> None:
    async with open_without_held_out(tmp_path, ask="after") as bot:
        await compared(bot, count=5)
        await learnt(bot)
        assert "10 of these stood in blind questions, and were chosen or not." in await bot.command("why")
