# SPDX-License-Identifier: Apache-2.0
"""The page of rated answers, of a whole goodbot: who gets what, and all of it by keyboard and touch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import AROUND, LONG_DAY, NARROW, ZONE, focus, opens, person, press, types
from tests.connectors.web.peer import Json
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import Bot
from tests.core.test_topics import rated_topics

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def wire(
    bot: Bot, port: int, user: str, query: str = "", body: Json | None = None, path: str = "/api/ratings"
) -> tuple[int, str]:
    """What this person gets: the status, and every letter that came."""
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    jar = aiohttp.CookieJar(unsafe=True)
    origin = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(origin, cookie_jar=jar, headers={"Origin": origin}) as http:
        if found := re.search(r"http://\S+#(\S+)", await bot.command("web", user=user)):
            async with http.post("/api/login", json={"code": found[1]}) as response:
                assert response.status == 200  # from now on both accounts are one person
        else:
            jar.update_cookies({f"goodbot-{port}": await web._sessions.begin(f"loopback:{user}")})
        method = "GET" if body is None else "POST"
        async with http.request(method, f"{path}{query}", json=body) as response:
            return response.status, f"{response.headers}{await response.text()}"


async def rated(bot: Bot) -> None:
    await bot.command("enable", channel="#team")
    for number in range(3):
        answer = await bot.say(f"shared {number}", channel="#team")
        await bot.react(answer, "👎")
        if number == 0:
            await bot.react(answer, "👍", user="rater")
    await bot.react(await bot.say("my secret"), "👍")


async def test_a_rater_gets_their_own_ratings_over_the_wire_and_a_talker_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        await rated(bot)
        status, found = await wire(bot, unused_tcp_port, "owner")
        assert (status, len(re.findall(r'"turn"', found))) == (200, 4)
        status, found = await wire(bot, unused_tcp_port, "rater")
        assert (status, len(re.findall(r'"turn"', found))) == (200, 1)
        for kept in ("secret", "loopback:", "owner", "#team", "shared 1", "-1.0"):
            assert kept not in found, kept
        for user, query in (("talker", ""), ("rater", "?left_out=1"), ("rater", "?person=loopback:owner")):
            status, found = await wire(bot, unused_tcp_port, user, query)
            assert (status, "shared" in found) == (400, False)
        _, found = await wire(bot, unused_tcp_port, "owner")
        turns = re.findall(r'"turn": ?"(\w+)"', found)
        status, _ = await wire(bot, unused_tcp_port, "rater", body={"do": "out", "turns": turns})
        assert status == 400
        status, found = await wire(bot, unused_tcp_port, "owner", body={"do": "out", "turns": turns})
        assert (status, "5 ratings of 4 answers left out." in found) == (200, True)


@pytest.mark.parametrize("query", ["?since=x", "?rating=great", "?version=latest", "?after=x"])
async def test_what_no_page_would_ask_is_refused_with_a_sentence(
    tmp_path: Path, unused_tcp_port: int, query: str
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        status, found = await wire(bot, unused_tcp_port, "owner", query)
        assert status == 400
        assert re.search(r'"error": ?"[A-Z][^"]+', found)


async def lines(page: Any) -> list[str]:
    return await page.locator("#list .line.question").all_inner_texts()


async def test_an_owner_searches_leaves_out_and_takes_in_again_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await rated(bot)
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "Rated answers")
        await owner.sees("shared 2")
        assert (await lines(owner.page))[:2] == ["shared 2", "shared 1"]
        await types(owner, "#text", "SHARED 1")
        await owner.sees("1 answer")
        assert "text=SHARED+1" in owner.page.url
        await owner.page.reload()
        await owner.sees("1 answer")
        await focus(owner, ".tick input")
        await owner.page.keyboard.press("Space")
        await press(owner, "Leave these out")
        await press(owner, "Yes, leave them out")
        await owner.sees("1 rating of 1 answer left out.")
        await owner.sees("Left out")
        await opens(owner, ".rated summary")
        await owner.sees("(left out)")
        await focus(owner, ".tick input")
        await owner.page.keyboard.press("Space")
        await press(owner, "Count these again")
        await owner.sees("1 rating of 1 answer counts again.")
        await press(owner, "Save this search")
        await types(owner, "#text", "")
        await owner.sees("shared 2")
        await press(owner, "SHARED 1")
        await owner.sees("1 answer")
        assert not await owner.scrolls_sideways()


async def test_a_day_is_whole_and_of_the_readers_own_clock(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, timezone_id=ZONE) as owner:
        await bot.command("enable", channel="#team")
        for number, at in enumerate(AROUND):
            answer = await bot.say(f"shared {number}", channel="#team")
            await bot.react(answer, "👎")
            await bot.store.write(
                lambda db, values=(at, answer.turn): db.execute(
                    "UPDATE turns SET created_at = ? WHERE id = ?", values
                )
            )
        await owner.sign_in(await link(bot))
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/ratings")
        await owner.sees("4 answers")
        await owner.page.locator("input[name=from]").fill(LONG_DAY)
        await owner.sees("3 answers")
        await owner.page.locator("input[name=to]").fill(LONG_DAY)
        await owner.sees("2 answers")
        assert await lines(owner.page) == ["shared 2", "shared 1"]
        await owner.page.reload()
        await owner.sees("2 answers")
        await owner.page.locator("input[name=from]").fill("")
        await owner.sees("3 answers")
        assert await lines(owner.page) == ["shared 2", "shared 1", "shared 0"]


async def test_an_owner_rates_several_by_touch_on_a_phone(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
    ):
        await rated(bot)
        await owner.sign_in(await link(bot))
        await owner.go_to("Rated answers")
        await owner.sees("shared 2")
        choice = owner.page.locator("[name=version]")
        assert await choice.is_hidden()
        await owner.page.get_by_role("button", name="Filters", exact=True).tap()
        await choice.fill("base")
        await owner.page.get_by_role("button", name="Filters: 1 set").tap()
        assert await choice.is_hidden()
        await owner.sees("3 answers")
        for number in (0, 1):
            await owner.page.locator(".tick").nth(number).tap()
        await owner.sees("2 ticked")
        await owner.page.locator("#bulk").get_by_role("button", name="Good").tap()
        await owner.sees("2 of 2 rated good.")
        assert not await owner.scrolls_sideways()
        await owner.page.locator(".rated summary").first.tap()
        await owner.page.locator(".opened .chip.good[aria-pressed=true]").wait_for()


async def test_an_owner_looks_at_one_topic(chromium: Any, tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await rated_topics(bot)
        await owner.sign_in(await link(bot))
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/ratings")
        await owner.sees("11 about tea please")
        choice = owner.page.locator("[name=topic]")
        await focus(owner, "[name=topic]")
        await choice.locator("option").filter(has_text="code: 6 answers, 50 % bad").wait_for(state="attached")
        await owner.page.keyboard.press("ArrowDown")
        await owner.sees("6 answers")
        assert "topic=code" in owner.page.url
        await owner.page.reload()
        await owner.sees("6 answers")
        assert await choice.input_value() == "code"
        assert not await owner.scrolls_sideways()


async def test_an_owner_sees_what_one_answer_taught_and_a_rater_does_not(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as owner:
        await bot.command("enable", channel="#team")
        await bot.rated(8, channel="#team")
        await bot.train()
        turn = next(iter(await bot.trained(1)))
        status, found = await wire(bot, unused_tcp_port, "rater", path=f"/api/taught?turn={turn}")
        assert (status, "learnt" in found, "tokens" in found) == (400, False, False)
        await owner.sign_in(await link(bot))
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/ratings")
        line = owner.page.locator(f"[data-turn='{turn}']")
        await opens(owner, f"[data-turn='{turn}'] summary")
        await press(owner, "What it taught")
        await owner.sees("it learnt from this answer")
        assert await line.locator(".heat .up").count() == 1
        assert await line.locator(".heat .down").count() == 1
        await opens(owner, ".heat summary")
        await owner.sees("2.72 times")
        assert not await owner.scrolls_sideways()


async def test_behind_a_slash_the_chat_leads_to_the_pages_of_a_person(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await owner.sign_in(await link(bot))
        await owner.go_to("Chat")
        await owner.page.locator("#sign-out").wait_for()  # else the page does not listen yet
        field = owner.page.get_by_label("Message", exact=True)
        await field.fill("/rat")
        await owner.page.get_by_role("option", name="To the page “Rated answers”").wait_for()
        await field.fill("/ratings")
        await field.press("Enter")
        await owner.page.wait_for_url("**/ratings")


async def test_a_rater_sees_theirs_and_nothing_of_owners(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        await rated(bot)
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        await press(rater, "More")
        await press(rater, "Rated answers")
        await rater.sees("shared 0")
        assert await lines(rater.page) == ["shared 0"]
        await rater.page.locator(".tick input").check()
        assert await rater.page.get_by_role("button", name="Leave these out").is_hidden()
        assert json.dumps(await lines(rater.page)).count("secret") == 0
