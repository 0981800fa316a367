# SPDX-License-Identifier: Apache-2.0
"""What somebody types of an answer counts where they typed it, whatever the commands before it wait for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.events import CommandEvent, Event, OrderKey, Outcome, RatingEvent, RatingKind, Receipt
from goodbot.base.errors import StoreError
from goodbot.commands.base import Call, Result
from goodbot.daemon.loopback import Answer
from goodbot.store import feedback

from tests.core.builders import Bot, open_bot, rate, rows, until

WHO = "rater"
GOOD, BAD = {f"loopback:{WHO}": 1.0}, {f"loopback:{WHO}": -1.0}


@contextlib.asynccontextmanager
async def held(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
    """Within, a command of the owner's is under way, as a long report is."""
    begun, goes = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> Result:
        begun.set()
        await goes.wait()
        return Result(text="done")

    monkeypatch.setitem(bot.app.commands._run, "report", slow)
    await bot.chat.host.submit([bot.chat.typed("report")])
    await begun.wait()
    yield
    goes.set()
    await told(bot)


async def told(bot: Bot) -> None:
    """Wait until nothing is left to do."""

    async def closed() -> bool:
        return not await rows(bot.store, "SELECT 1 FROM inbox WHERE payload <> ''")

    await until(closed)


async def types(bot: Bot, name: str, args: str = "") -> None:
    [receipt] = await bot.chat.host.submit([bot.chat.typed(name, args, user=WHO)])
    assert receipt.outcome is Outcome.ACCEPTED


def pressed(answer: Answer, value: float) -> RatingEvent:
    """A press in a page, by this machine's clock."""
    bare = rate("pressed", 0, value, answer.turn)
    return replace(
        bare,
        order=OrderKey(9, "pressed", ours=True),
        user=replace(bare.user, id=WHO),
        channel=answer.message.channel,
        message_id="",
        turn=answer.turn,
        source="button",
        kind=RatingKind.RATE,
    )


async def test_b1_a_press_that_was_told_as_done_is_not_overruled_by_what_was_typed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("q1", user=WHO)
        async with held(bot, monkeypatch):
            typed = bot.chat.typed("good", answer.turn, user=WHO)
            typed = replace(typed, order=OrderKey(1, "typed", ours=True))
            await bot.chat.host.submit([typed])
            [receipt] = await bot.chat.host.submit([pressed(answer, -1.0)])
            assert receipt.text.startswith("Bad.")
            assert await bot.labels(answer) == BAD
        assert await bot.labels(answer) == BAD


async def test_a_typed_rating_is_told_while_a_report_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("q1", user=WHO)
        async with held(bot, monkeypatch):
            assert (await bot.command("good", user=WHO)).startswith("Good.")
            assert "how many stars" in await bot.command("stars", "7", user=WHO)
            assert (await bot.command("undo", user=WHO)).startswith("Taken back.")
            assert await bot.labels(answer) == {}


async def test_it_is_of_the_answer_that_was_the_last_one_when_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path) as bot:
        first = await bot.say("q1", user=WHO)
        bot.app._tasks["commands"].cancel()  # nothing that waits is done
        await types(bot, "good")
        await types(bot, "reason", "It is short.")
        second = await bot.say("q2", user=WHO)
        await types(bot, "bad")
        await types(bot, "undo")
        await types(bot, "stars", "4")
        third = await bot.say("q3", user=WHO)
        kept = [await bot.labels(answer) for answer in (first, second, third)]
        assert kept == [GOOD, {f"loopback:{WHO}": 0.5}, {}]
        [remark] = await bot.store.read(lambda db: feedback.remarks(db, [first.turn]))
        assert remark.text == "It is short."
    async with open_bot(tmp_path) as bot:  # as after a crash: they are told, and change nothing
        await told(bot)
        assert [await bot.labels(answer) for answer in (first, second, third)] == kept


async def test_undo_takes_back_what_was_the_last_rating_when_it_was_typed(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        first, second = [await bot.say(f"q{n}", user=WHO) for n in range(2)]
        await bot.react(first, "👍", user=WHO)
        bot.app._tasks["commands"].cancel()
        await types(bot, "undo")
        await bot.react(second, "👎", user=WHO)
        assert [await bot.labels(first), await bot.labels(second)] == [{}, BAD]
    async with open_bot(tmp_path) as bot:
        await told(bot)
        assert [await bot.labels(first), await bot.labels(second)] == [{}, BAD]


async def test_what_meant_no_answer_means_none_after_a_crash_either(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.app._tasks["commands"].cancel()
        await types(bot, "good")
        answer = await bot.say("q1", user=WHO)
    async with open_bot(tmp_path) as bot:
        await told(bot)
        assert await bot.labels(answer) == {}


async def test_what_could_not_be_stored_is_rated_when_it_comes_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("q1", user=WHO)
        typed = bot.chat.typed("good", user=WHO)
        broken = rate("broken", 6, 7.0, message_id=answer.message.id)  # out of range: a broken connector
        with pytest.raises(StoreError):
            await bot.chat.host.submit([typed, broken])
        assert await bot.labels(answer) == {}
        assert not bot.app.commands._said
        await bot.chat.host.submit([typed])
        await told(bot)
        assert await bot.labels(answer) == GOOD


async def test_nobody_is_told_the_words_of_who_was_forgotten_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes = asyncio.Event(), asyncio.Event()
    async with open_bot(tmp_path) as bot:
        await bot.say("canary", user=WHO)
        acknowledge = bot.app.connectors.acknowledge

        async def slow(event: Event, receipt: Receipt) -> None:
            if isinstance(event, CommandEvent) and event.name == "good":
                begun.set()
                await goes.wait()
            await acknowledge(event, receipt)

        monkeypatch.setattr(bot.app.connectors, "acknowledge", slow)
        await types(bot, "good")
        await begun.wait()
        await types(bot, "bad")  # it waits until the platform has heard of the one before
        await bot.command("forget", "me", user=WHO)
        await bot.command("forget", "me yes", user=WHO)
        goes.set()
        await bot.app.dispatcher._rated.join()
        receipts = await rows(bot.store, "SELECT receipt FROM inbox")
        assert "canary" not in str(receipts)
