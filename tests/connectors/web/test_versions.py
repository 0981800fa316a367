# SPDX-License-Identifier: Apache-2.0
"""The page of all versions, of a whole goodbot: for owners alone, and all of it by keyboard."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import goodbot_connectors.web
import pytest
from goodbot.api.learnt import AnsweredTwice
from goodbot.api.overview import LearntCard
from goodbot.api.versions import FeatureCompared, VersionsCompared
from goodbot.config import HttpConfig
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import DESK, NARROW, Person, focus, opens, person, press, tap, types
from tests.connectors.web.peer import Json
from tests.connectors.web.scripted import Scripted
from tests.connectors.web.test_axe import MADE
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import Bot
from tests.core.commands.test_overview import SHORTER
from tests.core.learning.evaluation.asking import asked, open_asking

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def wire(bot: Bot, port: int, user: str, query: str = "") -> tuple[int, str]:
    """What the page of this person gets: the status, and every letter that came."""
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    cookies = {f"goodbot-{port}": await web._sessions.begin(f"loopback:{user}")}
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookies=cookies) as http,
        http.get(f"/api/versions{query}") as response,
    ):
        return response.status, await response.text()


async def test_nothing_of_it_reaches_anybody_but_an_owner(tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        bot.fake.set(learnt=[SHORTER])
        await bot.rated(8)
        await bot.train()
        status, found = await wire(bot, unused_tcp_port, "owner", "?first=0&second=1")
        assert status == 200
        assert "shorter" in found
        assert "Learnt in between" in found
        for user in ("rater", "talker"):
            for query in ("", "?first=0&second=1", "?first=x&second=1"):
                status, found = await wire(bot, unused_tcp_port, user, query)
                assert status == 400
                for kept in ("shorter", "question", "v1", "rated", "fake", str(tmp_path)):
                    assert kept not in found, (user, query, kept)


@pytest.mark.parametrize("query", ["?first=1", "?first=0&second=x", "?first=0&second=9", "?first=1&second=1"])
async def test_what_no_page_would_ask_is_refused_with_a_sentence(
    tmp_path: Path, unused_tcp_port: int, query: str
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        status, found = await wire(bot, unused_tcp_port, "owner", query)
        assert status == 400
        assert re.search(r'"error": ?"[A-Z][^"]+\."', found)


async def grown(bot: Bot) -> None:
    """Three versions, of which the second was left, and a training that was refused."""
    bot.fake.set(learnt=[SHORTER])
    for back in ("", "1", ""):
        await bot.rated(8)
        await bot.train()
        if back:
            await bot.rollback(back)
    bot.fake.set(train="refuse")
    await bot.rated(8)
    await bot.train()
    bot.fake.set(train="ok")


async def tree(owner: Person) -> list[str]:
    """Name and marks of each version, from the top."""
    heads = await owner.page.locator("#tree .head").all()
    return [" ".join(await one.locator("strong, .badge").all_inner_texts()) for one in heads]


@pytest.mark.parametrize(
    ("viewport", "act"), [(NARROW, press), (DESK, press), (NARROW, tap)], ids=["phone", "desk", "touch"]
)
async def test_an_owner_looks_goes_back_keeps_and_compares_by_keyboard_and_by_touch(
    chromium: Any, tmp_path: Path, unused_tcp_port: int, viewport: Any, act: Any
) -> None:
    touch = act is tap
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=viewport, has_touch=touch) as owner,
    ):
        await grown(bot)
        await owner.sign_in(await link(bot))
        await act(owner, "Versions")
        await owner.page.wait_for_url("**/versions")
        await owner.sees("v3 answers now.")
        assert await tree(owner) == [
            "Training on v3 Refused",
            "v3 Answers now",
            "v2 Rolled back",
            "v1 Earlier",
            "The base model Earlier",
        ]
        await owner.sees("v3 comes from v1.")
        if touch:
            await owner.page.locator("#version-1 summary").tap()
        else:
            await opens(owner, "#version-1 summary")
        await act(owner, "Keep v1")
        await owner.sees("v1 is pinned: its files stay.")
        await act(owner, "Roll back to v1")
        await owner.sees("This lets v1 answer in place of v3.")
        await act(owner, "Yes, roll back")
        await owner.sees("v1 answers now.")
        await owner.page.locator("#version-1 .badge.answers").wait_for()
        assert "v1 Answers now Kept" in await tree(owner)
        assert await owner.page.locator("#version-1 details[open]").count(), "what is open stays open"
        shown = await owner.page.locator("#tree button").all_inner_texts()
        assert not [name for name in shown if name.startswith("Roll back")], "v1 is kept"
        await act(owner, "Let go of v1")
        await owner.sees("v1 is no longer pinned.")
        if touch:
            await owner.page.locator("#first").select_option("v2")
        else:
            await focus(owner, "#first")
            await owner.page.keyboard.type("v2")
        await owner.sees("v3 does not come from v2: both come from v1.")
        if touch:
            await owner.page.locator("#question").tap()
            await owner.page.keyboard.type("Who are you?")
            await tap(owner, "Ask both")
        else:
            await types(owner, "#question", "Who are you?")
            await owner.page.keyboard.press("Enter")
        await owner.sees("v2 says: Who are you?")
        await owner.sees("v3 says: Who are you?")
        assert not await owner.scrolls_sideways()


async def test_an_owner_chooses_blind_here_and_sees_how_the_versions_stand(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    sections: Json = {"http": HttpConfig(port=unused_tcp_port), "connectors": {"web": {}}}
    async with (
        open_asking(tmp_path, sections=sections, extra=(goodbot_connectors.web,), terminal=True) as bot,
        person(chromium, viewport=NARROW) as owner,
    ):
        await bot.rated(8)
        await bot.train()
        await asked(bot)
        found = re.search(r"http://\S+", await bot.command("web"))
        assert found is not None
        await owner.sign_in(found[0])
        await press(owner, "Versions")
        await owner.sees("5 pairs of answers to your own questions")
        await press(owner, "Choose between answers")
        for number in range(4):
            await owner.sees(f"Which is better? ({number + 1} of 5)")
            shown = await owner.page.locator("#blind .told").inner_text()
            await press(owner, "A" if shown.index("v0 says") < shown.index("v1 says") else "B")
        await owner.sees("0 for v1, 4 for the base model. The base model answers again.")
        await owner.sees("Owners, asked blind, found it worse than the version before.")
        rows = await owner.page.locator("#places tbody tr").all_inner_texts()
        assert [row.split("\t") for row in rows] == [
            ["The base model", "–", "–", "4"],
            ["v1", "10%", "1% and 67%", "4"],
        ]
        assert not await owner.scrolls_sideways()


async def test_words_that_differ_are_marked(ada: Person, bot: Scripted) -> None:
    pair = AnsweredTwice(prompt="Who?", before="The cat sat  down.", after="A cat sat on it.")
    compared = VersionsCompared(first=1, second=3, told=["v3 comes from v1."], pairs=[pair])
    bot.made = replace(MADE, compared=compared)
    bot.seen = replace(bot.seen, lesson=LearntCard(version=3, told="It has.", pairs=[pair]))
    for path in ("/versions", "/progress"):
        await ada.page.goto(f"{bot.address}{path}")
        await ada.page.locator(".pair mark").first.wait_for()
        shown = await ada.page.locator(".pair dd").evaluate_all("all => all.map((one) => one.innerHTML)")
        assert shown == [
            "<mark>The</mark> cat sat  <mark>down.</mark>",
            "<mark>A</mark> cat sat <mark>on it.</mark>",
        ]
        drawn = await ada.page.locator(".pair mark").first.evaluate(
            "one => getComputedStyle(one).textDecoration"
        )
        assert "underline" in drawn, path


async def test_what_was_measured_is_a_table_with_what_is_clear_marked(ada: Person, bot: Scripted) -> None:
    features = [
        FeatureCompared(name="Characters of an answer", first="100", second="62", change="−38%", clear=True),
        FeatureCompared(name="With a list", first="60%", second="58%", change="−2 points", clear=False),
    ]
    compared = VersionsCompared(
        first=1, second=3, told=["v3 comes from v1."], measured="Measured in 64 answers.", features=features
    )
    bot.made = replace(MADE, compared=compared)
    await ada.page.goto(f"{bot.address}/versions")
    await ada.sees("Measured in 64 answers.")
    heads = await ada.page.locator("#measured th[scope=col]").all_inner_texts()
    assert heads == ["In their answers", "v1", "v3", "Change"]
    rows = await ada.page.locator("#measured tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        ["Characters of an answer", "100", "62", "−38%"],
        ["With a list", "60%", "58%", "−2 points"],
    ]
    assert await ada.page.locator("#measured th[scope=row]").count() == 2
    assert await ada.page.locator("#measured mark").all_inner_texts() == ["−38%"]
    await ada.page.set_viewport_size(NARROW)
    assert not await ada.scrolls_sideways()


async def test_one_switch_shows_how_the_base_models_stand(ada: Person, bot: Scripted) -> None:
    model = f"Some/{'Model1B' * 8}"  # with no place to break it
    bot.made = replace(MADE, asks=0, bases=[replace(MADE.bases[0], model=model)])
    await ada.page.goto(f"{bot.address}/versions")
    await ada.sees("How often each would be chosen over the base model")
    switch = ada.page.get_by_role("button", name="By base model")
    assert await switch.get_attribute("aria-pressed") == "false"
    await press(ada, "By base model")
    await ada.sees("Nobody is asked about two base models together.")
    rows = await ada.page.locator("#places tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [[model, "90%", "33% and 99%", "4"]]
    assert await switch.get_attribute("aria-pressed") == "true"
    await ada.page.set_viewport_size(NARROW)
    assert not await ada.scrolls_sideways()
    await press(ada, "By base model")
    await ada.sees("How often each would be chosen over the base model")
    bot.made = replace(MADE, bases=[])
    await ada.page.goto(f"{bot.address}/versions")
    await ada.page.locator("#places tbody tr").first.wait_for()
    assert await switch.is_hidden(), "no choice was between a base model and a version of it"
    bot.made = replace(MADE, asks=0, places=[])
    await ada.page.goto(f"{bot.address}/versions")
    await ada.sees("Nobody is asked about two base models together.")
    assert await switch.is_hidden(), "of the model that answers now nobody has chosen a version"


async def test_a_rater_finds_no_way_here_and_nothing_when_they_come(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        await grown(bot)
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        assert await rater.page.get_by_role("link", name="Versions").is_hidden()
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/versions")
        await rater.sees("Owners of this bot see its versions here.")
        assert await rater.page.locator("main button").locator("visible=true").count() == 0
