# SPDX-License-Identifier: Apache-2.0
"""A rating that no training will use says so, and nothing counts it: `status`, `why` and the claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.events import Outcome, RatingKind
from goodbot.api.turns import Turn

from tests.core.builders import Bot, open_bot, rows
from tests.core.test_captures import capture, one, rating
from tests.core.test_stars import claimed

UNUSED = "This answer is not used for training."


class Veto:
    """Lets no answer train that has a word in it."""

    @hookimpl
    def veto_capture(self, turn: Turn) -> str | None:
        return "not that" if "secret" in turn.response else None


async def vetoed(bot: Bot) -> str:
    return (await bot.say("a secret")).turn


async def brought_in_and_vetoed(bot: Bot) -> str:
    return (await one(bot, capture("c", response="a secret"))).turn


async def silent(bot: Bot) -> str:
    return (await one(bot, capture("c", response=" "))).turn


async def of_another_model(bot: Bot) -> str:
    return (await one(bot, capture("c"))).turn


async def from_before_a_switch(bot: Bot) -> str:
    answer = await bot.say("Hello?")
    await bot.store.write(lambda db: db.execute("UPDATE turns SET model = 'before'"))
    return answer.turn


async def set_aside(bot: Bot) -> str:
    answer = await bot.say("Hello?")
    query = "INSERT INTO set_aside SELECT id, model, 1, 'nan', 'why', '{}', 1 FROM turns"
    await bot.store.write(lambda db: db.execute(query))
    return answer.turn


async def trained_on(bot: Bot) -> str:
    """Rated by its owner; now somebody else rates it."""
    await bot.rated(8)
    run = await bot.train()
    assert run.state == "activated"
    return next(iter(await bot.trained_by(run.version)))


CASES: dict[str, tuple[Callable[[Bot], Awaitable[str]], str, dict[str, Any]]] = {
    "a plugin's veto": (vetoed, UNUSED, {}),
    "a plugin's veto of another program's": (brought_in_and_vetoed, UNUSED, {}),
    "without a word": (silent, UNUSED, {}),
    "another model's": (
        of_another_model,
        "Another model gave this answer: it is not used for training.",
        {"from_others": False},
    ),
    "the base model before": (
        from_before_a_switch,
        "I was another model when I gave this answer: it is not used for training now.",
        {},
    ),
    "set aside": (
        set_aside,
        "A training has left this answer out: it counts again once an owner types `/rl train retry`.",
        {},
    ),
    "trained on": (trained_on, "A training has used this answer already.", {}),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_no_training_uses_is_told_and_counted_nowhere(tmp_path: Path, case: str) -> None:
    make, sentence, settings = CASES[case]
    async with open_bot(tmp_path, extra=(Veto(),), **settings) as bot:
        turn = await make(bot)
        await bot.command("enable")
        before = (await bot.status())["ratings"]
        assert await claimed(bot) == before
        user = dataclasses.replace(rating("r").user, id="rater")
        measured = {"kind": RatingKind.OUTCOME, "source": "tests"}
        for event, said in (
            (rating("r0", turn=turn, user=user, **measured), "Kept."),
            (rating("r1", turn=turn, user=user), "Good."),
            (rating("r2", -1.0, turn=turn, user=user, source="reaction:-"), "Bad."),
        ):
            receipt = await one(bot, event)
            assert receipt.outcome is Outcome.ACCEPTED
            assert receipt.text.startswith(f"{said} {before} of 8 ratings ({8 - before} to go). {sentence}")
            assert (await bot.status())["ratings"] == before == await claimed(bot)
            assert f"{before} of 8 ratings, {8 - before} more until" in (await bot.status())["next"]
        why = await bot.command("why")
        assert f"{before} of 8 ratings, {8 - before} more until" in why or "It learnt from 6" in why


async def test_what_a_plugin_says_of_its_veto_stays_with_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(Veto(),)) as bot:
        await bot.say("a secret")
        assert "not that" not in await bot.command("good")


@pytest.mark.parametrize("again", [True, False])
async def test_a_better_answer_says_so_too_where_it_is_not_learnt_from(tmp_path: Path, again: bool) -> None:
    async with open_bot(tmp_path, extra=(Veto(),)) as bot:
        turn = await (trained_on if again else vetoed)(bot)
        receipt = await one(bot, rating("b", turn=turn, kind=RatingKind.BETTER, text="Better so."))
        assert receipt.text.startswith("Your better answer is kept.")
        assert (UNUSED in receipt.text) is not again
        assert "used this answer already" not in receipt.text, "pairs are made of what has trained, too"


@pytest.mark.parametrize("kind", [RatingKind.RATE, RatingKind.RETRACT])
async def test_a_rating_that_changes_after_a_training_is_not_said_to_come_to_nothing(
    tmp_path: Path, kind: RatingKind
) -> None:
    async with open_bot(tmp_path) as bot:
        turn = await trained_on(bot)
        [(before,)] = await rows(bot.store, "SELECT value FROM labels WHERE turn = ?", (turn,))
        value = -before if kind is RatingKind.RATE else None
        receipt = await one(bot, rating("r", value, turn=turn, kind=kind, source=""))
        assert receipt.text.endswith("I will undo what I learnt from your earlier rating.")
        assert await rows(bot.store, "SELECT version FROM adapters WHERE tainted <> ''")


async def test_measures_of_a_private_chat_say_that_they_wait(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?", user="rater")
        event = rating("r", turn=answer.turn, kind=RatingKind.OUTCOME, source="tests")
        event = dataclasses.replace(event, channel=answer.message.channel)
        receipt = await one(bot, event)
        assert "This one does not count until the person who asked types `/rl share on`" in receipt.text
        assert (await bot.status())["ratings"] == 0 == await claimed(bot)


async def test_what_was_measured_says_so_where_a_rating_stands_over_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        turn = (await bot.say("Hello?")).turn
        measured: dict[str, Any] = {"turn": turn, "kind": RatingKind.OUTCOME}
        first = await one(bot, rating("o1", -1.0, source="tests", **measured))
        assert first.text == "Kept. 1 of 8 ratings (7 to go)."
        second = await one(bot, rating("o2", 0.5, source="lint", **measured))
        assert second.text == "Kept. 1 of 8 ratings (7 to go).", "the mean of both counts"
        await one(bot, rating("r", turn=turn))
        third = await one(bot, rating("o3", -1.0, source="types", **measured))
        assert third.text.startswith("That changes nothing: your other rating counts, “good”.")
        gone = rating("gone", None, turn=turn, kind=RatingKind.RETRACT, source="", retracts="o4")
        user = dataclasses.replace(gone.user, id="rater")
        await one(bot, dataclasses.replace(gone, user=user))
        late = await one(bot, rating("o4", 1.0, user=user, source="tests", **measured))
        assert late.text.startswith("That does not count: it was taken back")


async def test_what_a_judge_says_is_kept_and_said_to_train_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        turn = (await bot.say("Hello?")).turn
        judged = await one(bot, rating("j", turn=turn, kind=RatingKind.JUDGE))
        assert judged.text == "Kept, but not used for training. 0 of 8 ratings (8 to go)."
        assert (await bot.status())["ratings"] == 0 == await claimed(bot)
