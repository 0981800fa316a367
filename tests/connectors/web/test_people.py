# SPDX-License-Identifier: Apache-2.0
"""The page of people, of a whole goodbot: who gets it, and all of it by keyboard and touch."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.api.commands import Grant
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import NARROW, Person, focus, opens, person, press, types
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import GRANTS, Bot, rows
from tests.core.commands.test_people_page import ask, user

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def wire(bot: Bot, port: int, who: str, query: str = "") -> tuple[int, str]:
    """What this person gets: the status, and every letter that came."""
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    cookies = {f"goodbot-{port}": await web._sessions.begin(f"loopback:{who}")}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookies=cookies) as http,
        http.get(f"/api/people{query}") as response,
    ):
        return response.status, f"{response.headers}{await response.text()}"


async def crowd(bot: Bot) -> None:
    """Somebody asks, a guest talks, and both the owner and the rater rate."""
    await ask(bot, 0)
    await bot.command("enable", channel="#team")
    await bot.say("Hello", channel="#team", user="guest")
    for number in range(2):
        answer = await bot.say(f"question {number}", channel="#team")
        await bot.react(answer, "👍", user="rater")
        await bot.react(answer, "👎")


async def test_an_owner_gets_everybody_over_the_wire_and_others_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        await crowd(bot)
        status, found = await wire(bot, unused_tcp_port, "owner")
        assert status == 200
        for shown in ("loopback:guest", "loopback:talker", "loopback:s0", "Ann 0", "by the config"):
            assert shown in found, shown
        for who in ("rater", "talker", "guest", "s0"):
            for query in ("", "?role=owner", "?text=o", "?after=1+x"):
                status, found = await wire(bot, unused_tcp_port, who, query)
                assert status in (400, 401)
                for kept in ("loopback", "Ann", "config", "terminal:"):
                    assert kept not in found, kept
        for query in ("?role=king", "?after=x"):
            status, found = await wire(bot, unused_tcp_port, "owner", query)
            assert status == 400
            assert re.search(r'"error": ?"[A-Z][^"]+', found)


async def line(somebody: Person, who: str) -> str:
    """Where this person stands, as a selector."""
    place = somebody.page.locator("#list > li", has=somebody.page.get_by_text(who, exact=True))
    await place.first.wait_for()
    return f"#{await place.first.get_attribute('id')}"


async def level_is(bot: Bot, who: str, level: Grant) -> None:
    async def so() -> bool:
        return bot.app.authorization.level(user(who)) is level

    await eventually(so)


async def test_an_owner_lets_in_changes_and_forgets_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await crowd(bot)
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "People")
        await owner.sees("“Ann 0” (loopback:s0) wants to talk to me, and may not.")
        await press(owner, "May talk")
        await owner.sees("loopback:s0 may talk now.")
        await level_is(bot, "s0", Grant.TALK)
        await focus(owner, "input[name=text]")
        await owner.page.keyboard.type("GUEST")
        await owner.sees("1 person")
        assert "text=GUEST" in owner.page.url
        await owner.page.reload()
        place = await line(owner, "loopback:guest")
        await focus(owner, f"{place} summary")
        await owner.page.keyboard.press("Enter")
        await focus(owner, f"{place} select")
        await owner.page.keyboard.type("Own")
        await press(owner, "Change")
        await owner.page.wait_for_timeout(600)
        assert bot.app.authorization.level(user("guest")) is Grant.NONE, "it asks back first"
        await owner.page.keyboard.press("Enter")
        await owner.sees("loopback:guest can do everything now.")
        await level_is(bot, "guest", Grant.ADMINISTER)
        trail = await rows(bot.store, "SELECT detail FROM audit WHERE action = 'people' ORDER BY seq DESC")
        assert "grant owner" in trail[0][0], "the same row as the command's"
        await press(owner, "Forget them")
        await owner.sees("This deletes what is stored of loopback:guest")
        await press(owner, "Yes, delete it all")
        await owner.sees("1 answer, 0 ratings deleted.")
        await level_is(bot, "guest", Grant.NONE)
        await owner.page.reload()
        await owner.sees("Nobody matches.")
        assert not await owner.scrolls_sideways()


async def test_an_owner_leaves_out_what_somebody_rated_by_touch(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
    ):
        await crowd(bot)
        await owner.sign_in(await link(bot))
        await owner.go_to("People")
        place = owner.page.locator(await line(owner, "loopback:rater"))
        await place.locator("summary").tap()
        await place.get_by_text("2 ratings").wait_for()
        await place.get_by_role("button", name="Leave out what they rated").tap()
        await owner.sees("loopback:rater rated 2 answers.")
        await place.get_by_role("button", name="Yes, leave it out").tap()
        await owner.sees("2 ratings of 2 answers left out.")
        await place.get_by_role("button", name="Count it again").tap()
        await owner.sees("2 ratings of 2 answers count again.")
        await place.get_by_text("2 ratings").wait_for()
        await owner.page.get_by_role("button", name="No", exact=True).tap()
        await owner.sees("loopback:s0 may not talk to me, as before.")
        await owner.page.locator("#asking .gone").wait_for()
        assert not await owner.scrolls_sideways()
        await place.get_by_role("link", name="Their ratings").tap()
        await owner.sees("question 1")


async def test_an_owner_finds_who_is_in_a_group_and_parts_their_own_account_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    mods, me = replace(GRANTS, rater_groups=("mods",)), f"terminal:{os.geteuid()}"
    async with (
        goodbot(tmp_path, unused_tcp_port, grants=mods) as bot,
        person(chromium, viewport=NARROW) as owner,
    ):
        bot.chat.groups = {"mods": {"grace"}}
        assert await bot.app.groups.refresh("loopback")
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "People")
        await types(owner, "input[name=text]", "MODS")
        await owner.sees("1 person")
        place = await line(owner, "loopback:grace")
        assert "mods" in await owner.page.locator(f"{place} .head").inner_text()
        await types(owner, "input[name=text]", me)
        await opens(owner, f"{await line(owner, f'{me}, web:owner')} summary")
        assert "web:owner" in str(await rows(bot.store, "SELECT * FROM links")), "since the signing in"
        await press(owner, "Unlink this account")
        await owner.sees("This account is a person of its own again.")
        assert "web:owner" not in str(await rows(bot.store, "SELECT * FROM links"))
        assert not await owner.scrolls_sideways()


async def test_a_rater_sees_no_page_of_people(chromium: Any, tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as rater:
        await crowd(bot)
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        assert await rater.page.get_by_role("link", name="People").is_hidden()
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/people")
        await rater.sees("Owners of this bot see its people here.")
        assert await rater.page.locator("#list > li").count() == 0
        assert await rater.page.locator("#filters").is_hidden()
