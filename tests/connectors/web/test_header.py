# SPDX-License-Identifier: Apache-2.0
"""The menu of pages at the top: by keyboard, by mouse and by touch, on a desk and on a phone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.web.browsing import DESK, Person, person
from tests.connectors.web.scripted import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

NARROW = {"width": 390, "height": 844}
FIRST = ["Chat", "To rate", "Progress", "Versions"]
MORE = ["Rated answers", "People", "Notes", "Report", "Activity", "Settings"]


def nav(somebody: Person) -> Any:
    return somebody.page.get_by_role("navigation", name="Pages")


async def links(somebody: Person) -> list[str]:
    """Those that can be seen, and so pressed."""
    return await nav(somebody).get_by_role("link").all_inner_texts()


@pytest.mark.parametrize("viewport", [DESK, NARROW], ids=["desk", "phone"])
async def test_the_menu_opens_and_closes_by_keyboard(chromium: Any, bot: Scripted, viewport: Any) -> None:
    async with person(chromium, viewport=viewport) as ada:
        await ada.come_back(bot, "ada")
        keys, more = ada.page.keyboard, nav(ada).get_by_role("button", name="More pages")
        opened, shut = more.and_(ada.page.locator("[aria-expanded=true]")), "[aria-expanded=false]"
        assert await links(ada) == FIRST
        await more.press("Enter")
        await opened.wait_for()
        assert await links(ada) == FIRST + MORE
        assert not await ada.scrolls_sideways()
        for name in MORE:
            await keys.press("Tab")
            assert await ada.page.evaluate("document.activeElement.textContent") == name
        await keys.press("Escape")
        await more.and_(ada.page.locator(f"{shut}:focus")).wait_for()
        assert await links(ada) == FIRST
        await more.press("Space")
        await opened.wait_for()
        for _ in (*MORE, "what comes behind it"):
            await keys.press("Tab")
        await more.and_(ada.page.locator(shut)).wait_for()
        await more.press("Enter")
        await keys.press("Tab")
        await keys.press("Enter")
        await ada.page.wait_for_url("**/ratings")
        await nav(ada).locator("button.here").wait_for()
        await more.press("Enter")
        assert await nav(ada).locator("[aria-current=page]").all_inner_texts() == ["Rated answers"]
        await ada.page.get_by_role("link", name="goodbot").press("Enter")
        await ada.page.wait_for_url("**/progress")  # the home of who rates


async def test_the_menu_is_within_a_phone_and_closes_when_something_else_is_touched(
    chromium: Any, bot: Scripted
) -> None:
    async with person(chromium, viewport=NARROW, is_mobile=True, has_touch=True) as ada:
        await ada.come_back(bot, "ada")
        more = nav(ada).get_by_role("button", name="More pages")
        row = [await one.bounding_box() for one in (*await nav(ada).get_by_role("link").all(), more)]
        assert len({round(box["y"] + box["height"] / 2) for box in row}) == 1, "one row"
        await more.tap()
        for one in await nav(ada).get_by_role("link").all():
            box = await one.bounding_box()
            assert box["x"] >= 0, await one.inner_text()
            assert box["x"] + box["width"] <= NARROW["width"], await one.inner_text()
        assert not await ada.scrolls_sideways()
        await ada.page.locator("#thread").tap()
        assert await links(ada) == FIRST
        await more.tap()
        await nav(ada).get_by_role("link", name="People").tap()
        await ada.page.wait_for_url("**/people")


async def test_each_sees_the_pages_that_are_for_them(chromium: Any, bot: Scripted) -> None:
    bot.talkers = {"bob"}
    async with person(chromium) as bob:
        await bob.come_back(bot, "bob")
        assert await links(bob) == ["Chat", "Progress"]
        assert await nav(bob).get_by_role("button").count() == 0
        await nav(bob).get_by_role("link", name="Progress").click()
        await bob.page.wait_for_url("**/progress")
        await bob.page.get_by_role("link", name="goodbot").click()
        await bob.page.wait_for_url(f"{bot.address}/")
