# SPDX-License-Identifier: Apache-2.0
"""The inbox in a real Chromium: answers of every connector, rated one after the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from goodbot.api.events import RatingKind
from goodbot.testing.connector_base import eventually

from tests.connectors.web.browsing import Person, pressed, told, until
from tests.connectors.web.scripted import Scripted, waiting

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_inbox_is_rated_by_keyboard(ada: Person, bot: Scripted) -> None:
    for number, place in enumerate(("telegram", "slack", "telegram")):
        bot.waiting.append(waiting(f"t{number}", f"Question {number}?", f"Answer {number}.", connector=place))
    await ada.go_to("To rate")
    await ada.sees("Question 0?")
    await ada.key("g")
    await ada.sees("Question 1?")
    await ada.sees("12 of 40 ratings (28 to go)")
    await ada.key("s")
    await ada.sees("Question 2?")
    await ada.key("2")
    await ada.sees("One answer skipped")
    rated = [(event.turn, event.value, event.source) for event in told(bot)]
    assert rated == [("t0", 1.0, "button"), ("t2", -0.5, "stars")]
    await ada.sees("13 of 40")
    await ada.key("u")
    await ada.sees("Question 2?")
    await until(lambda: told(bot)[-1].kind is RatingKind.RETRACT)
    assert told(bot)[-1].turn == "t2"
    await ada.key("c")
    await ada.page.keyboard.type("It is about cats.")
    await ada.page.keyboard.press("Control+Enter")
    await until(lambda: told(bot)[-1].text == "It is about cats.")
    await ada.sees("Question 2?")


async def test_the_inbox_is_narrowed_down(ada: Person, bot: Scripted) -> None:
    for number, place in enumerate(("telegram", "slack")):
        bot.waiting.append(waiting(f"t{number}", f"Question {number}?", "Answer.", connector=place))
    bot.waiting.append(waiting("t2", "Rated?", "Yes.", label=1.0, connector="slack"))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.page.get_by_role("combobox", name="From").select_option("slack")
    await ada.sees("Question 1?")
    await ada.page.get_by_role("combobox", name="Which").select_option("already rated")
    await ada.sees("Rated?")
    await pressed(ada.page.locator(".card"), "Good").wait_for()
    await ada.page.reload()
    await ada.sees("Rated?")
    await ada.page.get_by_role("searchbox", name="Words").fill("nothing of that kind")
    await ada.sees("Nothing matches")
    await ada.page.goto(f"{bot.address}/rate?since=1")
    await ada.sees("Question 0?")


async def test_the_least_sure_come_first_where_something_is_predicted(ada: Person, bot: Scripted) -> None:
    for number in range(3):
        bot.waiting.append(waiting(f"t{number}", f"Question {number}?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    which = ada.page.get_by_role("combobox", name="Which")
    assert await which.locator("option").all_inner_texts() == ["not rated yet", "already rated"]
    bot.unsure = ["t2", "t0"]
    await ada.page.reload()
    await ada.sees("Question 0?")
    await which.select_option("not rated yet, the least sure first")
    await ada.sees("Question 2?")
    await ada.key("s")
    await ada.sees("Question 0?")
    await ada.page.reload()
    await ada.sees("Question 2?")
    await ada.key("g")
    await ada.sees("Question 0?")
    assert [event.turn for event in told(bot)] == ["t2"]


async def test_five_stars_stay_five_stars(ada: Person, bot: Scripted) -> None:
    bot.waiting.append(waiting("t0", "Question 0?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    await ada.key("5")
    await ada.sees("All rated")
    await ada.page.goto(f"{bot.address}/rate?rated=1")
    await ada.sees("Question 0?")
    assert await ada.page.get_by_label("5 stars").get_attribute("aria-pressed") == "true"
    assert await pressed(ada.page.locator(".card"), "Good").count() == 0


async def test_many_answers_come_page_by_page(ada: Person, bot: Scripted) -> None:
    for number in range(120):
        bot.waiting.append(waiting(f"t{number:03}", f"Question {number}?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    await ada.key(*"s" * 49)
    await ada.sees("Question 49?")
    await ada.key("s")
    await ada.sees("Question 50?")
    await ada.key("s")
    await ada.sees("Question 51?")


async def test_pressing_fast_at_the_end_of_a_page_takes_nothing_back(ada: Person, bot: Scripted) -> None:
    for number in range(60):
        bot.waiting.append(waiting(f"t{number:03}", f"Question {number}?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    await ada.key(*"s" * 49)
    await ada.sees("Question 49?")

    async def slowly(route: Any) -> None:
        await asyncio.sleep(0.3)
        await route.continue_()

    await ada.page.route("**/api/inbox*", slowly)
    await ada.key("g", "g", "s")
    await ada.sees("Question 50?")
    assert [(event.turn, event.kind) for event in told(bot)] == [("t049", RatingKind.RATE)]
    await ada.page.unroute("**/api/inbox*")
    await ada.key(*"s" * 9)
    await ada.sees("Question 59?")
    await ada.key("s")
    await ada.sees("59 answers skipped")


async def test_what_was_skipped_comes_again_and_what_is_new_by_itself(ada: Person, bot: Scripted) -> None:
    bot.waiting.append(waiting("t1", "Question 1?", "Answer."))
    await ada.page.clock.install()
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 1?")
    await ada.key("s")
    await ada.page.get_by_role("button", name="Show them again").click()
    await ada.sees("Question 1?")
    await ada.key("g")
    await ada.sees("All rated")
    bot.waiting.insert(0, waiting("t2", "Question 2?", "Answer."))

    async def a_look_later() -> bool:  # the first finds the page busy, at times
        await ada.page.clock.run_for(16_000)
        return await ada.page.get_by_text("Question 2?", exact=True).is_visible()

    await eventually(a_look_later)


async def test_the_focus_goes_on_to_the_next_answer(ada: Person, bot: Scripted) -> None:
    for number in range(2):
        bot.waiting.append(waiting(f"t{number}", f"Question {number}?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    await ada.page.get_by_role("button", name="Good").focus()
    await ada.page.keyboard.press("Enter")
    await ada.sees("Question 1?")
    assert await ada.page.evaluate("document.activeElement.id") == "card"
    await ada.page.keyboard.press("Tab")
    await ada.page.keyboard.press("Enter")
    await until(lambda: len(told(bot)) == 2)


async def test_a_reason_that_is_being_typed_is_not_lost_by_a_press(ada: Person, bot: Scripted) -> None:
    for number in range(2):
        bot.waiting.append(waiting(f"t{number}", f"Question {number}?", "Answer."))
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Question 0?")
    await ada.key("c")
    await ada.page.keyboard.type("It is about cats.")
    await ada.page.get_by_role("button", name="Bad").click()
    await ada.page.get_by_role("button", name="Keep it").click()
    await until(lambda: len(told(bot)) == 2)
    assert {(event.turn, event.text) for event in told(bot)} == {("t0", ""), ("t0", "It is about cats.")}
