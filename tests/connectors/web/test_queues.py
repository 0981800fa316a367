# SPDX-License-Identifier: Apache-2.0
"""Queues of a whole goodbot: what goes over the wire to whom, and all of it by keyboard and touch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import NARROW, Person, focus, person, press
from tests.connectors.web.peer import Json
from tests.connectors.web.test_ratings import wire
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import Bot, rows

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = [["all", ""]]


def making(*turns: str, shared: Any = ALL, newest: int = 0) -> Json:
    return {"do": "make", "name": "First look", "turns": [*turns], "newest": newest, "shared": shared}


async def said(bot: Bot) -> list[str]:
    """Two answers of a shared channel and one of the owner's own chat."""
    await bot.command("enable", channel="#team")
    await bot.command("people", "grant rater loopback:guest")
    shared = [await bot.say(f"shared {number}", channel="#team") for number in range(2)]
    return [one.turn for one in (*shared, await bot.say("my secret"))]


async def test_over_the_wire_a_rater_gets_their_own_part_and_others_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        turns = await said(bot)

        async def asked(who: str, path: str, query: str = "", body: Json | None = None) -> tuple[int, str]:
            return await wire(bot, unused_tcp_port, who, query, body, f"/api/{path}")

        for who in ("rater", "guest", "talker"):
            assert (await asked(who, "queues", body=making(*turns)))[0] == 400
        body = making(*turns, shared=[["person", "loopback:rater"]])
        status, found = await asked("owner", "queues", body=body)
        assert (status, "The queue is made: 3 answers." in found) == (200, True)
        status, found = await asked("rater", "queues")
        assert (status, '"answers": 2' in found, '"made": []' in found) == (200, True, True)
        for kept in ("loopback:", "owner", "secret", *turns):
            assert kept not in found, kept
        status, found = await asked("rater", "inbox", "?queue=1")
        assert (status, len(re.findall(r'"turn"', found))) == (200, 2)
        assert "secret" not in found
        others = [("guest", "?queue=1"), ("talker", "?queue=1")]
        others += [("rater", f"?queue={wrong}") for wrong in ("2", "x", "-1", "1" * 16, "²")]
        for who, query in others:
            status, found = await asked(who, "inbox", query)
            assert (status, '"turn"' in found, "shared 0" in found) == (200, False, False)
        for who in ("guest", "talker"):
            assert "First look" not in (await asked(who, "queues"))[1]
        assert (await asked("rater", "queues", body={"do": "close", "id": 1}))[0] == 400
        assert (await asked("owner", "queues", body={"do": "close", "id": 1}))[0] == 200
        assert "First look" not in (await asked("rater", "queues"))[1]
        assert '"turn"' not in (await asked("rater", "inbox", "?queue=1"))[1]
        assert '"loopback:rater"' in (await asked("owner", "queues"))[1]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"do": "make"},
        making() | {"turns": [1]},
        making() | {"shared": ["all"]},
        making() | {"shared": [["all", 1]]},
        making() | {"newest": "5"},
        {"do": "close", "id": "1"},
        {"do": "close", "id": 0},
        {"do": "delete", "id": 1},
    ],
)
async def test_what_no_page_would_send_is_refused_with_a_sentence(
    tmp_path: Path, unused_tcp_port: int, body: Json
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        status, found = await wire(bot, unused_tcp_port, "owner", body=body, path="/api/queues")
        assert status == 400
        assert re.search(r'"error": ?"[A-Z][^"]+', found)


async def test_the_page_is_worded_in_the_browser_s_language(tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        web = bot.app.connectors.running["web"]
        assert isinstance(web, WebConnector)
        cookies = {f"goodbot-{unused_tcp_port}": await web._sessions.begin("loopback:rater")}
        async with (
            aiohttp.ClientSession(
                f"http://127.0.0.1:{unused_tcp_port}",
                cookies=cookies,
                headers={"Accept-Language": "de-AT,en"},
            ) as http,
            http.get("/api/queues") as response,
        ):
            assert json.loads(await response.text())["words"]["done"] == "{done} von {answers}"


async def rater_signs_in(bot: Bot, rater: Person) -> None:
    found = re.search(r"http://\S+", await bot.command("web", user="rater"))
    assert found is not None
    await rater.sign_in(found[0])


async def rated_by(bot: Bot, count: int) -> None:
    async def so() -> bool:
        return len(await rows(bot.store, "SELECT turn FROM labels WHERE rater = 'loopback:rater'")) == count

    await eventually(so)


async def test_a_queue_is_made_and_rated_by_keyboard_and_closed(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium) as owner,
        person(chromium, viewport=NARROW) as rater,
    ):
        await said(bot)
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "Rated answers")
        await press(owner, "Queues")
        await focus(owner, "#queues input[name=name]")
        await owner.page.keyboard.type("First look")
        await press(owner, "Make a queue")
        await owner.sees("The queue is made: 2 answers.")
        await owner.sees("Nobody has rated anything of it yet.")
        await rater_signs_in(bot, rater)
        await press(rater, "To rate")
        await rater.sees("0 of 2")
        await focus(rater, ".chip.queue[aria-pressed=false]")
        async with rater.page.expect_response("**/api/inbox?*queue=1*"):
            await rater.page.keyboard.press("Enter")
        await rater.sees("shared 1")
        await rater.key("g")
        await rater.sees("1 of 2")
        await rater.sees("shared 0")
        await rater.key("b")
        await rater.sees("This queue is done")
        await rater.sees("2 of 2")
        assert not await rater.scrolls_sideways()
        await rated_by(bot, 2)
        await owner.page.reload()
        await press(owner, "Queues")
        await owner.sees("loopback:rater: 2 of 2")
        await press(owner, "Close First look")
        await owner.sees("The queue is closed. Its ratings stay.")
        await rater.page.reload()
        await rater.page.locator("#queues .chip").first.wait_for()
        assert await rater.page.locator("#queues .chip").count() == 1


async def test_a_queue_of_ticked_answers_is_made_for_one_person_by_touch(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
        person(chromium, viewport=NARROW, has_touch=True) as rater,
    ):
        await said(bot)
        await bot.react(await bot.say("shared 9", channel="#team"), "👎")
        await owner.sign_in(await link(bot))
        await owner.go_to("Rated answers")
        await owner.sees("shared 9")
        await owner.page.locator(".tick input").tap()
        await owner.page.locator("#queues summary").tap()
        form = owner.page.locator("#queues form")
        await form.get_by_label("What it is called").fill("Just one")
        await form.get_by_label("Which answers").select_option("the ticked ones")
        await form.get_by_label("Shared with").select_option("these people")
        await form.get_by_label("Their ids").fill("loopback:talker")
        await form.get_by_role("button", name="Make a queue").tap()
        await owner.sees("Nobody there may rate: 'loopback:talker'.")
        await form.get_by_label("Their ids").fill("loopback:rater")
        await form.get_by_role("button", name="Make a queue").tap()
        await owner.sees("The queue is made: 1 answer.")
        await owner.sees("loopback:rater: 0 of 1")
        assert not await owner.scrolls_sideways()
        await rater_signs_in(bot, rater)
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/rate?queue=1")
        await rater.sees("shared 9")
        await rater.page.locator(".card").get_by_role("button", name="Good").tap()
        await rater.sees("This queue is done")
        await rater.page.get_by_role("button", name="All answers").tap()
        await rater.sees("shared 1")
        await rated_by(bot, 1)
