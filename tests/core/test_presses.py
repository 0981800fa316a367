# SPDX-License-Identifier: Apache-2.0
"""`run:NAME ARGS`: a button is the command, as if typed by whoever presses it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from goodbot.api.events import Button, Event, Outcome, PressEvent, Receipt
from goodbot.daemon.loopback import Answer
from goodbot.store import settings
from goodbot.testing import VirtualClock

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot, rows, until

RESET = Button(action="run:rollback all yes", label="Yes, begin anew")


async def trained(bot: Bot) -> Answer:
    """A bot whose first version answers; the last answer that was rated."""
    answers = await bot.rated(8)
    await bot.train()
    assert await bot.app.registry.active() == 1
    return answers[-1]


async def audited(bot: Bot, action: str) -> list[tuple[str, dict[str, object]]]:
    entries, whole = await bot.store.read(settings.audit)
    assert whole
    return [(e.actor, json.loads(e.detail)) for e in entries if e.action == action]


async def test_rollback_all_asks_back_and_the_button_does_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await trained(bot)
        asked = await bot.chat.command("rollback", "all")
        assert asked.offer == (RESET,)
        assert "leaves out all ratings so far" in asked.text
        assert await bot.app.registry.active() == 1
        done = await bot.chat.press(answer, RESET.action)
        assert done.text.startswith("8 ratings left out; withdrawn: v1. The base model answers.")
        assert await bot.app.registry.active() == 0
        assert (await bot.status())["ratings"] == 0
        assert [detail for _, detail in await audited(bot, "rollback")] == [
            {"args": "all", "channel": "private", "asked": True},
            {"args": "all yes", "channel": "private", "done": True},
        ]
        assert "8 ratings that were left out count again" in await bot.command("rollback", "since never")


async def test_rollback_asks_back_for_exactly_what_it_does(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await trained(bot)
        asked = await bot.chat.command("rollback")
        [button] = asked.offer
        assert (button.action, button.label) == ("run:rollback base yes", "Yes, roll back")
        assert "the base model answer in place of v1" in asked.text
        assert await bot.app.registry.active() == 1
        done = await bot.chat.press(answer, button.action)
        assert done.text.startswith("the base model answers now.")
        again = await bot.chat.press(answer, button.action)
        assert again.offer, "what was confirmed is done once"
        assert again.text.startswith("Nothing was done: that counts within a minute")
        assert "This keeps the base model, which answers already" in again.text


async def test_m1_a_confirmation_is_of_one_person_and_one_minute(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        answer = await bot.say("Hello?")
        await bot.command("people", "grant owner loopback:second")
        await bot.chat.command("rollback", "all")
        other = await bot.chat.press(answer, RESET.action, user="second")
        assert other.offer == (RESET,), "they are asked themselves"
        clock.advance(61)
        late = await bot.chat.press(answer, RESET.action)
        assert late.offer == (RESET,)
        assert late.text.startswith("Nothing was done: that counts within a minute of the question")
        assert "left out;" in (await bot.chat.press(answer, RESET.action)).text


async def test_m2_the_answer_to_a_question_counts_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("rollback", "all")
        assert "left out;" in await bot.command("rollback", "all yes")
        again = await bot.chat.command("rollback", "all yes")
        assert again.text.startswith("Nothing was done: that counts within a minute")
        assert again.offer == (RESET,), "it is asked anew"
        assert len(await rows(bot.store, "SELECT 1 FROM quarantines")) == 1


async def test_a_stranger_who_presses_learns_nothing_and_leaves_a_trace(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.chat.command("rollback", "all")
        for user in ("stranger", "talker", "rater"):
            receipt = await bot.chat.press(answer, RESET.action, user=user)
            told = "" if user == "stranger" else "`rollback` is for the owners of this bot."
            assert (receipt.outcome, receipt.text, receipt.offer) == (Outcome.DENIED, told, ())
        tried = [detail for _, detail in await audited(bot, "rollback") if "refused" in detail]
        assert len(tried) == 3
        assert await rows(bot.store, "SELECT 1 FROM quarantines") == []


async def test_a_press_rates_like_the_typed_command(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer, _ = await bot.say("One?"), await bot.say("Two?")
        receipt = await bot.chat.press(answer, "run:bad")
        assert receipt.turn == answer.turn, "the answer under which it stood"
        assert await bot.labels(answer) == {"loopback:owner": -1.0}
        assert "1 of 8" in receipt.text
        undone = await bot.chat.press(answer, "run:undo")
        assert undone.text.startswith("Taken back. 0 of 8 ratings (8 to go).")


async def test_a_press_is_acknowledged_at_once_and_told_as_a_press(tmp_path: Path) -> None:
    """The platform waits for the first; a connector must know that it answers a press."""
    async with open_bot(tmp_path) as bot:
        told: list[tuple[type[Event], str]] = []

        async def acknowledge(event: Event, receipt: Receipt) -> None:
            told.append((type(event), receipt.text))

        bot.chat.acknowledge = acknowledge  # type: ignore[method-assign]
        press = PressEvent(
            event_id="p", order=bot.chat.typed("x").order, user=OWNER, channel=CHANNEL, action="run:status"
        )
        await bot.chat.host.submit([press])
        await until(lambda: len(told) == 2)
        assert told[0] == (PressEvent, "")
        assert told[1][0] is PressEvent
        assert "answers" in told[1][1]
        [again] = await bot.chat.host.submit([press])
        assert again.text == told[1][1]
        assert again.duplicate
        nonsense = replace(press, event_id="q", action="drop:table")
        await bot.chat.host.submit([nonsense])
        await until(lambda: len(told) == 3)
        assert told[2] == (PressEvent, ""), "nobody is left waiting"
