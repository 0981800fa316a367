# SPDX-License-Identifier: Apache-2.0
"""The page of how far learning is, of a whole goodbot: who gets what by HTTP, and all of it by keyboard."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import DESK, NARROW, person, press, tap
from tests.connectors.web.peer import Browser, Json
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import Bot
from tests.core.commands.test_overview import SHORTER, TOLD

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARTS = {"answers", "ratings", "needed", "next", "paused", "begun", "training", "lesson", "versions"}
SAID = "who-is-asking-for-a-secret"


async def progress(bot: Bot, port: int, user: str) -> tuple[Json, str]:
    """What the page of this person gets: as JSON, and every letter that came over the wire."""
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    cookies = {f"goodbot-{port}": await web._sessions.begin(f"loopback:{user}")}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookies=cookies) as http,
        http.get("/api/progress") as response,
    ):
        text = await response.text()
        return json.loads(text), f"{response.headers}{text}"


async def test_nothing_reaches_a_rater_or_a_talker_that_the_bot_would_not_tell_them(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        bot.fake.set(learnt=[SHORTER])
        for number in range(8):
            await bot.react(await bot.say(f"{SAID} {number}"), "👍")
        await bot.train()
        owners, _ = await progress(bot, unused_tcp_port, "owner")
        assert set(owners) == PARTS
        assert owners["lesson"]["told"] == TOLD
        assert [one["version"] for one in owners["versions"]] == [0]
        for user in ("rater", "talker"):
            found, wire = await progress(bot, unused_tcp_port, user)
            assert set(found) == PARTS
            assert found["versions"] == []
            for kept in (SAID, "v0 says", "loopback", "owner", "rater", "talker", str(tmp_path)):
                assert kept not in wire, (user, kept)
        assert found["lesson"] is None, "a talker may not ask why"
        raters, _ = await progress(bot, unused_tcp_port, "rater")
        assert raters["lesson"] == {"version": 1, "told": TOLD, "pinned": False, "pairs": []}


async def test_each_sees_their_own_questions_before_and_after(tmp_path: Path, unused_tcp_port: int) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        contextlib.aclosing(Browser(f"http://127.0.0.1:{unused_tcp_port}")) as rater,
    ):
        bot.fake.set(learnt=[SHORTER])
        found = re.search(r"#(\S+)", await bot.command("web", user="rater"))
        assert found is not None
        await rater.log_in(found[1])
        rater.put({"id": "s1", "at": 1, "in": "main", "say": "/rl share on"})
        rater.put({"id": "q1", "at": 2, "in": "main", "say": "mine"})

        async def answered() -> bool:
            entries = (await rater.get("/api/conversation", id="main"))["entries"]
            return any(one["turn"] for one in entries)

        await eventually(answered)
        entries = (await rater.get("/api/conversation", id="main"))["entries"]
        turn = next(one["turn"] for one in entries if one["turn"])
        rater.put({"id": "r1", "at": 3, "in": "main", "press": "good", "turn": turn})
        for number in range(7):
            await bot.react(await bot.say(f"{SAID} {number}"), "👍")
        await bot.train()
        seen = await rater.get("/api/progress")
        assert [pair["prompt"] for pair in seen["lesson"]["pairs"]] == ["mine"]
        assert SAID not in json.dumps(seen)


async def test_who_is_not_signed_in_gets_nothing(tmp_path: Path, unused_tcp_port: int) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port),
        aiohttp.ClientSession() as http,
        http.get(f"http://127.0.0.1:{unused_tcp_port}/api/progress") as response,
    ):
        assert response.status == 401


@pytest.mark.parametrize(
    ("viewport", "act"), [(NARROW, press), (DESK, press), (NARROW, tap)], ids=["phone", "desk", "touch"]
)
async def test_an_owner_trains_looks_keeps_and_takes_back_by_keyboard_and_by_touch(
    chromium: Any, tmp_path: Path, unused_tcp_port: int, viewport: Any, act: Any
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=viewport, has_touch=act is tap) as owner,
    ):
        await owner.sign_in(await link(bot))
        await owner.sees("Nothing is trained yet: the base model answers.")
        await owner.sees("No answer is rated yet.")
        bot.fake.set(learnt=[SHORTER])
        await bot.rated(4)
        await owner.page.reload()
        await owner.page.get_by_role("img", name="4 of 8 ratings").wait_for()
        await act(owner, "Train now")
        await owner.sees("4 ratings are few")
        await act(owner, "Train anyway")
        await owner.sees(TOLD)
        await owner.sees("v1 answers now.")
        await owner.page.get_by_text("One moment").wait_for(state="detached")
        await owner.page.get_by_role("img", name="Liked share of the rated answers: base 50%").wait_for()
        async with owner.page.expect_request("**/api/do") as asked:
            await act(owner, "Keep this version")
        assert "/rl adapters pin 1" in ((await asked.value).post_data or ""), "the version that is shown"
        await owner.sees("kept: no newer version answers")
        await act(owner, "Let newer versions answer")
        await owner.page.get_by_role("button", name="Keep this version").wait_for()
        await act(owner, "Why?")
        await owner.sees("It learnt from")
        await act(owner, "Take back")
        await owner.sees("This lets the base model answer in place of v1.")
        await act(owner, "Yes, roll back")
        await owner.sees("The base model answers now.")
        assert not await owner.scrolls_sideways()


async def test_figures_that_are_old_are_said_to_be(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as owner:
        await owner.sign_in(await link(bot))
        await owner.sees("No answer is rated yet.")
        await bot.rated(1)
        await owner.page.reload()
        await press(owner, "As a table")
        banner, table = owner.page.locator("#banner"), owner.page.locator("#shares table")
        looks_again = "document.dispatchEvent(new Event('visibilitychange'))"
        await owner.page.route("**/api/progress", lambda route: route.fulfill(status=500, body="{}"))
        await owner.page.evaluate(looks_again)
        await banner.wait_for()
        await owner.page.unroute("**/api/progress")
        await bot.rated(1)
        await owner.page.evaluate(looks_again)
        await banner.wait_for(state="hidden")
        await table.get_by_text("of 2").wait_for()
        assert await owner.page.evaluate("document.activeElement.textContent") == "As a table"


async def test_a_training_is_watched_paused_and_cancelled(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as owner:
        await owner.sign_in(await link(bot))
        await owner.page.get_by_role("img", name="0 of 8 ratings").wait_for()
        await bot.rated(8)
        bot.fake.set(train="steps", hold=3)
        await bot.command("train")
        await owner.sees("A training goes on")
        live = owner.page.locator("#live")
        await live.get_by_text("learning, 50%, 30 s left").wait_for()
        assert await live.get_by_role("progressbar").get_attribute("value") == "0.5"
        await live.get_by_role("img", name="The loss, step by step").wait_for()
        await live.get_by_text("Loss 0.25 at step 0, 0.25 at step 3. It does not have to go down.").wait_for()
        drawn = await live.locator(".curve polyline").get_attribute("points")
        assert len(drawn.split()) == 4, "a point for each step"
        falls = """async () => (await import("/files/chart.js")).curve([[1, 2], [2, 1], [5, 0]])
            .querySelector("polyline").getAttribute("points")"""
        assert await owner.page.evaluate(falls) == "5,5 62.5,28 235,51", "less is lower"
        assert not await owner.scrolls_sideways()
        await press(owner, "Pause")
        await owner.sees("Training is paused")
        await owner.page.locator(
            "button:focus", has_text="Go on"
        ).wait_for()  # Pause is gone, the place is not
        await press(owner, "Go on")
        await owner.sees("A training goes on")
        await press(owner, "Cancel")
        await owner.sees("The training was dropped")
        await owner.page.get_by_role("button", name="Train now").wait_for()


async def test_a_rater_is_shown_no_button_that_would_be_refused(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        bot.fake.set(learnt=[SHORTER])
        await bot.rated(8)
        await bot.train()
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        await rater.sees(TOLD)
        shown = rater.page.locator("main").get_by_role("button").locator("visible=true")
        assert await shown.all_inner_texts() == ["Why?"]
        assert await rater.page.locator("#versions").is_hidden()
        await shown.click()
        await rater.sees("It learnt from")
