# SPDX-License-Identifier: Apache-2.0
"""What can be done with what was said, beside rating it: in a real Chromium, by keyboard and by touch."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import PressEvent

from tests.connectors.web.browsing import PHONE, Person, person, told
from tests.connectors.web.scripted import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORBIDDEN = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }"
ABSENT = "() => { Object.defineProperty(navigator, 'clipboard', { value: undefined }); }"
"""As where the page comes without https."""


async def pasted(somebody: Person) -> str:
    """What is in the clipboard."""
    field = somebody.page.get_by_label("Message", exact=True)
    await field.fill("")
    await field.press("Control+v")
    return await field.input_value()


@pytest.mark.parametrize("refusal", ["() => {}", FORBIDDEN, ABSENT], ids=["allowed", "forbidden", "absent"])
async def test_an_answer_is_copied_as_it_was_written(ada: Person, bot: Scripted, refusal: str) -> None:
    await ada.page.evaluate(refusal)
    bot.answers["list"] = "**Two**:\n\n- a\n- b\n\n```sh\nls\n```"
    answer = await ada.ask("list")
    await answer.locator(".foot").get_by_role("button", name="Copy").press("Enter")
    await answer.get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == bot.answers["list"]
    await answer.locator(".code").get_by_role("button", name="Copy").click()
    await until_text(ada, "#announce", "Copied")
    assert await pasted(ada) == "ls"
    await ada.page.get_by_label("Message", exact=True).fill("")
    await ada.key("y")
    await answer.locator(".foot").get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == bot.answers["list"]
    assert told(bot) == []


async def until_text(somebody: Person, selector: str, text: str) -> None:
    await somebody.page.locator(selector).filter(has_text=text).wait_for(state="attached")


async def test_an_answer_that_nobody_rated_is_tried_again_once(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    bot.wait_at = 0
    bot.go_on.clear()
    again = answer.get_by_role("button", name="Try again")
    await again.press("Enter")
    await again.press("Enter")  # it is on its way already
    bot.go_on.set()
    await ada.sees("Here is another answer.")
    assert await ada.page.get_by_text("You said: hello").count() == 0
    [press] = [event for event in bot.events if isinstance(event, PressEvent)]
    assert press.action == "again:better"
    await ada.key("y")
    await answer.get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == "Here is another answer.", "the one that is there"


async def test_who_may_not_rate_copies_and_is_not_offered_another(chromium: Any, bot: Scripted) -> None:
    bot.talkers = {"bob"}
    async with person(chromium, viewport=PHONE, has_touch=True) as bob:
        await bob.come_back(bot, "bob")
        await bob.page.get_by_label("Message", exact=True).fill("hello")
        await bob.page.get_by_role("button", name="Send").tap()
        answer = bob.page.locator("article.bot")
        await bob.sees("You said: hello")
        assert await answer.get_by_role("button", name="Try again").count() == 0
        await answer.get_by_role("button", name="Copy").tap()
        await answer.get_by_role("button", name="Copied").wait_for()
        assert not await bob.scrolls_sideways()
