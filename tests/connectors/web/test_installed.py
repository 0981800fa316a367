# SPDX-License-Identifier: Apache-2.0
"""The pages as an app: what it keeps on a phone, that it opens without goodbot, and what it tells."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot.testing.connector_base import eventually
from goodbot_connectors.web.site import StaticFile, _file, _worker

from tests.connectors.web.browsing import NARROW, Person, person, press
from tests.connectors.web.scripted import Scripted, waiting
from tests.connectors.web.test_whole import goodbot, link

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONTROLLED = """navigator.serviceWorker.ready.then(() => navigator.serviceWorker.controller
  || new Promise((done) => navigator.serviceWorker.addEventListener("controllerchange", done)))
  .then(() => true)"""
KEPT = """caches.keys().then((names) => Promise.all(names.map(async (name) => {
  const keys = await (await caches.open(name)).keys();
  return keys.map(({ url }) => url);
}))).then((all) => all.flat())"""
NOTED = """
  const Real = window.Notification;
  window.shown = [];
  window.Notification = class extends Real {
    constructor(text, how) { super(text, how); window.shown.push([text, JSON.stringify(how)]); }
  };
  Object.defineProperty(document, "hidden", { get: () => Boolean(window.away) });
"""


async def test_it_can_be_installed(bot: Scripted) -> None:
    async with aiohttp.ClientSession(bot.address) as http:
        async with http.get("/manifest.webmanifest") as response:
            assert response.content_type == "application/manifest+json"
            manifest = json.loads(await response.text())
        assert (manifest["start_url"], manifest["display"]) == ("/home", "standalone")
        sizes: set[str] = set()
        for icon in manifest["icons"]:
            async with http.get(icon["src"]) as response:
                assert (response.status, response.content_type) == (200, icon["type"])
                data = await response.read()
            if icon["type"] == "image/png":
                assert icon["sizes"] == "{}x{}".format(*struct.unpack(">II", data[16:24]))
            sizes.add(icon["sizes"])
        assert sizes >= {"192x192", "512x512"}, "what browsers ask for"


async def test_the_worker_is_another_one_as_soon_as_a_file_is() -> None:
    def made(**texts: bytes) -> StaticFile:
        files = {"worker.js": b'"THE_VERSION" ["THE_PAGES"]', **texts}
        return _worker({name: _file(f"{name}.js", data) for name, data in files.items()})

    first, second = made(a=b"1"), made(a=b"2")
    assert first.tag != second.tag
    assert first.tag == made(a=b"1").tag
    version, pages = first.data.decode().split(" ", 1)
    assert re.fullmatch(r'"[0-9a-f]{16}"', version)
    assert "/rate" in json.loads(pages)
    assert "/worker.js" not in json.loads(pages)


async def test_it_opens_without_goodbot_and_keeps_nothing_that_anybody_said(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    address = f"http://127.0.0.1:{unused_tcp_port}"
    async with person(chromium, viewport=NARROW, service_workers="allow") as owner:
        async with goodbot(tmp_path, unused_tcp_port) as bot:
            await bot.react(await bot.say("my secret"), "👍")
            await owner.sign_in(await link(bot))
            await owner.page.evaluate(CONTROLLED)
            await owner.page.goto(f"{address}/ratings?text=secret")
            await owner.sees("Rated answers")
            await owner.page.goto(f"{address}/rate?text=secret")
            await owner.sees("Nothing matches")
            await owner.page.goto(f"{address}/home")
            await owner.page.wait_for_url("**/progress")
            await owner.page.get_by_role("heading", name="Progress").wait_for()
            kept = await owner.page.evaluate(KEPT)
        assert f"{address}/rate" in kept
        assert f"{address}/files/rate.js" in kept
        assert [url for url in kept if "/api/" in url or "?" in url or "secret" in url] == []
        await owner.page.goto(f"{address}/rate")
        await owner.sees("goodbot cannot be reached.")
        assert await owner.page.get_by_role("heading", name="Answers to rate").is_visible()
        await owner.page.goto(f"{address}/home")
        await owner.page.wait_for_url("**/progress")
        await owner.page.get_by_role("heading", name="Progress").wait_for()


async def test_who_wants_it_is_told_how_many_wait_and_no_word_of_them(ada: Person, bot: Scripted) -> None:
    await ada.context.grant_permissions(["notifications"], origin=bot.address)
    await ada.page.add_init_script(NOTED)
    await ada.page.clock.install()
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("Tell me when answers wait")
    asked: list[str] = []
    answered: list[str] = []
    ada.page.on("request", lambda one: asked.append(one.url) if "/api/waiting" in one.url else None)
    ada.page.on("response", lambda one: answered.append(one.url) if "/api/waiting" in one.url else None)

    async def told(*texts: str) -> None:
        before = len(asked)
        await ada.page.clock.run_for(61_000)

        async def looked() -> bool:
            return before < len(asked) == len(answered)

        async def shown() -> bool:
            return len(await ada.page.evaluate("window.shown")) >= len(texts)

        await eventually(looked)
        await eventually(shown)
        found = await ada.page.evaluate("window.shown")
        assert [text for text, _ in found] == [*texts]
        assert "Question" not in str(found)

    async def told_nothing_at_all() -> None:
        before, shown = len(asked), await ada.page.evaluate("window.shown")
        await ada.page.clock.run_for(200_000)
        await ada.page.evaluate("fetch('/manifest.webmanifest').then((response) => response.text())")
        assert (len(asked), await ada.page.evaluate("window.shown")) == (before, shown)

    await ada.page.evaluate("window.away = true")
    bot.waiting += [waiting(f"t{number}", f"Question {number}?", "Answer.") for number in range(2)]
    await told_nothing_at_all()
    await press(ada, "Tell me when answers wait")
    await ada.sees("Do not tell me any more")
    two, three = "2 answers wait for your rating.", "3 answers wait for your rating."
    for _ in range(2):  # it is said once
        await told(two)
    bot.waiting.append(waiting("t2", "Question 2?", "Answer."))
    await told(two, three)
    await ada.page.evaluate("window.away = false")
    bot.waiting.append(waiting("t3", "Question 3?", "Answer."))
    await told(two, three)  # nor of what stands before one's eyes
    await ada.page.evaluate("window.away = true")
    bot.waiting.append(waiting("t4", "Question 4?", "Answer."))
    await told(two, three, "5 answers wait for your rating.")
    found = await ada.page.evaluate("fetch('/api/waiting').then((response) => response.text())")
    assert json.loads(found)["count"] == 5
    assert "Question" not in found
    await press(ada, "Do not tell me any more")
    await ada.sees("Tell me when answers wait")
    bot.waiting.append(waiting("t5", "Question 5?", "Answer."))
    await told_nothing_at_all()
