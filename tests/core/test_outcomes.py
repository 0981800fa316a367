# SPDX-License-Identifier: Apache-2.0
"""Outcomes: what a program has measured of an answer is a reward by itself, beside what people say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import Outcome, RatingEvent, RatingKind
from goodbot.api.labels import Label, LedgerEvent, OrderKey, fold
from goodbot.daemon.loopback import Answer

from tests.core.builders import Bot, open_bot, rows

R = RatingKind
UP = LedgerEvent(event_id="up", order=OrderKey(5), kind=R.RATE, source="button", value=1.0)


def outcome(id_: str, at: int, value: float | None, source: str = "tests") -> LedgerEvent:
    return LedgerEvent(event_id=id_, order=OrderKey(at), kind=R.OUTCOME, source=source, value=value)


def test_of_one_environment_the_latest_counts_of_several_the_mean() -> None:
    assert fold([outcome("1", 1, -1.0), outcome("2", 2, 1.0)]) == Label(value=1.0, event_id="2")
    both = fold([outcome("1", 1, 1.0, "tests"), outcome("2", 2, -0.5, "lint")])
    assert both == Label(value=0.25, event_id="2")
    assert fold([outcome("1", 1, None)]) is None


def test_who_looked_counts_before_what_was_measured_and_taking_it_back_shows_that_again() -> None:
    bad = outcome("bad", 9, -1.0)
    assert fold([UP, bad]) == Label(value=1.0, event_id="up")
    undone = LedgerEvent(event_id="x", order=OrderKey(6), kind=R.RETRACT, retracts="up")
    assert fold([UP, bad, undone]) == Label(value=-1.0, event_id="bad")


def test_a_thumb_of_the_same_source_does_not_replace_an_outcome() -> None:
    thumb = LedgerEvent(event_id="t", order=OrderKey(1), kind=R.RATE, source="tests", value=1.0)
    gone = LedgerEvent(event_id="x", order=OrderKey(3), kind=R.RETRACT, retracts="t")
    assert fold([thumb, outcome("o", 2, -1.0), gone]) == Label(value=-1.0, event_id="o")


def test_an_outcome_is_taken_back_like_a_rating() -> None:
    given = [outcome("1", 1, 1.0, "tests"), outcome("2", 2, -1.0, "lint")]
    gone = LedgerEvent(event_id="x", order=OrderKey(9), kind=R.RETRACT, source="lint")
    assert fold([*given, gone]) == Label(value=1.0, event_id="1")
    assert fold([*given, LedgerEvent(event_id="x", order=OrderKey(9), kind=R.RETRACT)]) is None


# -- through the store


async def report(bot: Bot, answer: Answer, value: float | None, **fields: Any) -> Any:
    """As an environment reports: by the turn's id."""
    common = bot.chat.typed("none")
    fields = {"kind": R.OUTCOME, "source": "tests", "value": value} | fields
    event = RatingEvent(
        event_id=common.event_id,
        order=common.order,
        user=common.user,
        channel=answer.message.channel,
        turn=answer.turn,
        **fields,
    )
    [receipt] = await bot.chat.host.submit([event])
    return receipt


async def test_outcomes_alone_fill_a_round_and_train(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=4, held_out=1, schedule="manual") as bot:
        answers = [await bot.say(f"question {n}") for n in range(4)]
        for number, answer in enumerate(answers):
            receipt = await report(bot, answer, 1.0 if number % 2 else -1.0)
            assert receipt.outcome is Outcome.ACCEPTED
        waits = "the next training starts once an owner types `/rl train`"
        assert receipt.text == f"Kept. 4 of 4 ratings: {waits}."
        assert await bot.labels(answers[1]) == {"loopback:owner": 1.0}
        await bot.command("train")
        await bot.settle()
        run = await bot.last_run()
        assert run.state == "activated"
        assert sorted(set((await bot.trained(1)).values())) == [-1.0, 1.0]


async def test_an_outcome_taken_back_after_the_training_taints_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=4, held_out=1, schedule="manual") as bot:
        answers = [await bot.say(f"question {n}") for n in range(4)]
        for number, answer in enumerate(answers):
            await report(bot, answer, 1.0 if number % 2 else -1.0)
        await bot.command("train")
        await bot.settle()
        await report(bot, answers[0], None, kind=R.RETRACT)
        tainted = await rows(bot.store, "SELECT tainted FROM adapters WHERE version = 1")
        assert tainted[0][0]
        assert await bot.labels(answers[0]) == {}


async def test_a_quarantine_leaves_outcomes_out_too(tmp_path: Path) -> None:
    """A program that reports nonsense is no better than a person who does."""
    async with open_bot(tmp_path, min_ratings=4, held_out=1, schedule="manual") as bot:
        answer = await bot.say("question")
        await report(bot, answer, 1.0)
        await bot.command("reset")
        await bot.command("reset", "yes")
        assert await bot.labels(answer) == {}
        assert await rows(bot.store, "SELECT 1 FROM turns WHERE rated > 0") == []


@pytest.mark.parametrize("value", [0.0, 0.5])
async def test_an_outcome_may_be_partial(tmp_path: Path, value: float) -> None:
    async with open_bot(tmp_path, min_ratings=4, held_out=1, schedule="manual") as bot:
        answer = await bot.say("question")
        receipt = await report(bot, answer, value)
        assert await bot.labels(answer) == {"loopback:owner": value}
        assert receipt.text.startswith(f"Kept. {int(value > 0)} of 4"), "0 takes no side"
