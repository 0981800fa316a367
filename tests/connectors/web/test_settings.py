# SPDX-License-Identifier: Apache-2.0
"""The page of settings, of a whole goodbot: who gets it, and all of it by keyboard and touch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.daemon.control import execute
from goodbot.testing.connector_base import eventually

from tests.connectors.web.browsing import NARROW, Person, opens, person, press, types
from tests.connectors.web.scripted import Scripted
from tests.connectors.web.test_axe import SET
from tests.connectors.web.test_ratings import wire
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/api/settings"
STARS = {"do": "set", "key": "serving.stars", "value": True, "before": False}
WRITTEN = '# Ours.\n[serving]\nlanguage = "de"  # for the team\n'


def file(home: Path) -> Path:
    """The bot's config file, with a comment in it."""
    (home / "bot").mkdir(exist_ok=True)
    path = home / "bot/config.toml"
    if not path.exists():
        path.write_text(WRITTEN, "utf-8")
    return path


async def test_owners_get_and_change_it_over_the_wire_and_nobody_else_a_letter(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    path = file(tmp_path)
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        for user in ("rater", "talker"):
            for body in (None, STARS):
                status, found = await wire(bot, unused_tcp_port, user, path=PATH, body=body)
                assert status == 400
                for kept in ("serving", "config.toml", "loopback:", "127.0.0.1:8"):
                    assert kept not in found, kept
        assert path.read_text("utf-8") == WRITTEN
        status, found = await wire(bot, unused_tcp_port, "owner", path=PATH, body=STARS)
        assert (status, "Saved." in found) == (200, True)
        assert path.read_text("utf-8") == f"{WRITTEN}stars = true\n"
        again = {"do": "restart"}
        status, found = await wire(bot, unused_tcp_port, "rater", path=PATH, body=again)
        assert (status, "Only owners" in found) == (400, True)
        assert not bot.app.restart.is_set()
        status, found = await wire(bot, unused_tcp_port, "owner", path=PATH, body=again)
        assert (status, "starts again now" in found) == (200, True)
        await until(bot.app.restart.is_set)
        for wrong in ({"do": "set"}, {"do": "go"}, {"value": None}, {"value": {"a": 1}}, {"value": [1]}):
            status, found = await wire(bot, unused_tcp_port, "owner", path=PATH, body={**STARS, **wrong})
            assert (status, '"error"' in found) == (400, True)


async def begin(somebody: Person, name: str) -> None:
    """Open the field of a setting by keyboard."""
    await opens(somebody, f'.setting:not([hidden]) [aria-label="Change {name}"]')


async def gone(path: Path, name: str) -> bool:
    return name not in path.read_text("utf-8")


async def shown(somebody: Person, words: str) -> None:
    await types(somebody, "[name=text]", words)
    await somebody.sees("1 setting")


async def test_an_owner_searches_changes_and_goes_back_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    path = file(tmp_path)
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "Settings")
        await owner.page.locator(".section").first.wait_for()
        await opens(owner, ".places summary")
        await owner.sees("Connected.")
        await shown(owner, "serving.language")
        assert "text=serving.language" in owner.page.url
        await begin(owner, "language")
        await owner.page.keyboard.type("fr")
        await press(owner, "Save")
        await owner.sees("Saved. It counts from the next start of goodbot.")
        assert path.read_text("utf-8") == WRITTEN.replace('"de"', '"fr"')
        await owner.sees("Until the next start of goodbot: en")
        await begin(owner, "language")
        await press(owner, "Back to the default")
        await eventually(lambda: gone(path, "language"))
        assert path.read_text("utf-8") == "# Ours.\n[serving]\n"
        await shown(owner, "held_out")
        await begin(owner, "held_out")
        await owner.page.keyboard.press("Control+A")
        await owner.page.keyboard.type("500")
        await owner.page.keyboard.press("Enter")
        await owner.sees("must lie between 1 and min_ratings")
        await owner.page.keyboard.press("Control+A")
        await owner.page.keyboard.type("1,000")  # in one language 1
        await owner.page.keyboard.press("Enter")
        await owner.sees("Write a number in digits alone, such as 1000 or 0.5.")
        await owner.page.keyboard.press("Escape")
        assert await owner.page.evaluate("document.activeElement.textContent") == "Change"
        await shown(owner, "http.host")
        await owner.sees("a change needs a code from the bot’s machine")
        await begin(owner, "host")
        await owner.page.keyboard.press("Control+A")
        await owner.page.keyboard.type("127.0.0.2")
        code = (await execute(bot.app, "web", ("allow", "http.host"))).data["code"]
        for typed, told in (("x", "No such code holds for http.host."), (str(code), "Saved.")):
            await types(owner, ".setting form label input", typed)
            await owner.page.keyboard.press("Enter")
            await owner.sees(told)
        assert 'host = "127.0.0.2"' in path.read_text("utf-8")
        await shown(owner, "model.path")
        assert await owner.page.locator(".setting:visible button").count() == 0
        await press(owner, "More")
        await press(owner, "Activity")
        await owner.sees("Change a setting")
        assert not await owner.scrolls_sideways()


async def test_an_owner_changes_one_by_touch_on_a_phone(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    path = file(tmp_path)
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
    ):
        await owner.sign_in(await link(bot))
        await owner.go_to("Settings")
        await owner.page.locator(".section summary").nth(1).tap()
        await owner.page.get_by_role("button", name="Change stars").tap()
        await owner.page.get_by_label("serving.stars").select_option("true")
        await owner.page.get_by_role("button", name="Save").tap()
        await owner.sees("Saved.")
        assert path.read_text("utf-8") == f"{WRITTEN}stars = true\n"
        assert not await owner.scrolls_sideways()


async def test_a_rater_is_told_that_it_is_for_owners(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        assert await rater.page.get_by_role("link", name="Settings").is_hidden()
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/settings")
        await rater.sees("Owners of this bot see its settings here.")
        assert await rater.page.locator(".setting").count() == 0


async def test_an_owner_starts_it_again_and_the_page_comes_back_by_itself(ada: Person, bot: Scripted) -> None:
    bot.set_up = replace(SET, trouble="")
    await ada.page.goto(f"{bot.address}/settings")
    await press(ada, "Start again with these settings")
    await until(lambda: bot.restarts == 1)
    settled = replace(SET, trouble="", settings=[replace(one, now=one.value) for one in SET.settings])
    bot.set_up = replace(settled, started_at=1.0)
    await ada.page.get_by_role("button", name="Start again with these settings").wait_for(state="hidden")
    await ada.sees("2 settings")
