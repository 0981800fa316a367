# SPDX-License-Identifier: Apache-2.0
"""The page of `goodbot --browser` in a real Chromium: the whole way, by keyboard and on a phone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.cli.program import need_backend
from tests.cli.setting_up import configured, tokens
from tests.cli.setup_page import SetupProgram
from tests.connectors.telegram.peer import SECRET, serve
from tests.connectors.web.browsing import DESK, Person, launched, person
from tests.connectors.web.test_axe import NARROW, violations
from tests.node import install
from tests.support import missing, require

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def telegram() -> Iterator[int]:
    """The port of a local Telegram."""
    require("telegram")
    with serve() as (port, _):
        yield port


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Any]:
    async with launched() as browser:
        yield browser


@pytest.fixture
def program(tmp_path: Path, telegram: int) -> Iterator[SetupProgram]:
    """At a home directory whose Telegram is the local one."""
    need_backend()
    home = tmp_path / "ada"
    home.mkdir()
    configured(home, f'[connectors.telegram]\napi_base = "http://127.0.0.1:{telegram}/bot"\n')
    with SetupProgram(home) as program:
        yield program


def program_of_axe() -> str:
    return (install.HERE / "node_modules/axe-core/axe.min.js").read_text("utf-8")


class Keys:
    """Somebody who has no mouse."""

    def __init__(self, somebody: Person, axe: str = "") -> None:
        """With its program, axe looks at each step."""
        self.page, self._somebody, self._axe = somebody.page, somebody, axe

    async def at(self, title: str) -> None:
        """Wait for the heading of a step, and for what is asked there."""
        await self.page.get_by_role("heading", name=title).wait_for()
        await self.page.locator("#asked:not([hidden])").wait_for()
        await self.look()

    async def look(self) -> None:
        """Raises AssertionError where something stands in anybody's way."""
        if self._axe:
            assert await violations(self._somebody, self._axe) == []

    async def press(self, name: str) -> None:
        """Go with Tab to the button that begins so, and press Enter."""
        wanted = self.page.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).first
        await wanted.wait_for()
        for _ in range(60):
            if await wanted.evaluate("one => one === document.activeElement"):
                return await self.page.keyboard.press("Enter")
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to {name}")

    async def type(self, text: str) -> None:
        """Into the only field."""
        await self.page.locator("#asked input").focus()
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Enter")


class Fingers(Keys):
    """Somebody who has nothing but a phone."""

    async def press(self, name: str) -> None:
        """Touch the button that begins so."""
        await self.page.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).first.tap()


async def test_a_bot_on_telegram_by_keyboard_alone(
    chromium: Any, program: SetupProgram, tmp_path: Path
) -> None:
    async with person(chromium) as ada:
        await ada.open(program.address)
        assert "#" not in ada.page.url, "the code is out of the address bar"
        keys = Keys(ada, "" if install.absent() else program_of_axe())
        await keys.at("Where do people talk to it?")
        assert await ada.page.locator("#asked .note code").inner_text() == "goodbot chat"
        await keys.press("Telegram")
        await keys.at("The bot's token")
        drawing = ada.page.get_by_role("img", name="t.me/BotFather")
        assert await drawing.count() == 2
        assert await ada.page.get_by_role("link", name="https://t.me/BotFather").count() == 1
        await keys.type(f"{SECRET[:-4]}9999")
        await ada.page.get_by_role("alert").get_by_text("Telegram does not know").wait_for()
        await keys.type(SECRET)
        await ada.sees("It belongs to @the_good_bot.")
        assert SECRET not in await ada.page.content()
        await ada.page.reload()  # the tab goes on where it was
        await keys.press("In a file")
        await keys.at("What does the computing?")
        await keys.press("Back")
        await keys.at("The bot's token")
        await keys.type(SECRET)
        await keys.press("In a file")
        await keys.at("What does the computing?")
        await keys.press("Automatic")
        await keys.at("Which model answers?")
        await keys.press("The tiny demo model")
        await keys.at("How boldly does it learn?")
        await keys.press("Balanced")
        await keys.at("When does it learn?")
        await keys.type("03:30")
        await keys.at("Who is its owner?")
        await keys.press("Send it a code")
        await keys.at("Ready")
        await ada.sees("@the_good_bot")
        await keys.press("Write this, and start it later")
        await ada.page.get_by_role("heading", name="Done. You can close this page.").wait_for()
        link = ada.page.get_by_role("link", name="t.me/the_good_bot?start=")
        assert await link.count() == 1
        assert await ada.page.get_by_role("img", name=re.compile("phone's camera")).count() == 1
        await keys.look()
    assert await asyncio.to_thread(program.ends) == 0
    home = tmp_path / "ada"
    assert f"GOODBOT_TELEGRAM_TOKEN={SECRET}\n" in tokens(home)
    assert 'schedule = "03:30"' in (home / ".goodbot" / "config.toml").read_text()


async def test_a_second_tab_is_told_of_the_first(chromium: Any, program: SetupProgram) -> None:
    async with person(chromium) as ada:
        first = await ada.open(program.address)
        await Keys(ada).at("Where do people talk to it?")
        await ada.open(program.address)
        await ada.page.get_by_role("alert").get_by_text("This link was used before.").wait_for()
        assert await first.get_by_role("heading", name="Where do people talk to it?").count() == 1


async def test_an_answer_that_is_lost_on_its_way_is_asked_for_again(
    chromium: Any, program: SetupProgram
) -> None:
    async with person(chromium) as ada:
        await ada.open(program.address)
        keys = Keys(ada)
        await keys.at("Where do people talk to it?")
        await ada.page.route("**/api/answer", lambda route: route.abort(), times=1)
        await keys.press("Telegram")
        await keys.press("Telegram")
        await keys.at("The bot's token")


async def test_where_no_page_may_keep_anything_it_works(chromium: Any, program: SetupProgram) -> None:
    async with person(chromium) as ada:
        refused = "get() { throw new DOMException('no', 'SecurityError'); }"
        await ada.context.add_init_script(f"Object.defineProperty(window, 'sessionStorage', {{ {refused} }})")
        await ada.open(program.address)
        await Keys(ada).at("Where do people talk to it?")


async def test_a_bot_is_set_up_by_touch_and_a_time_of_its_own_is_proposed_again(
    chromium: Any, tmp_path: Path
) -> None:
    need_backend()
    home = tmp_path / "ada"
    home.mkdir()
    configured(home, '[training]\nschedule = "02:15"\n')
    given = {"platform": "terminal", "backend": "auto", "install": "no"}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    with SetupProgram(home, "init", *words) as program:
        async with person(chromium, viewport=NARROW, has_touch=True, is_mobile=True) as ada:
            await ada.open(program.address)
            fingers = Fingers(ada)
            for title, choice in (
                ("Which model answers?", "The tiny demo model"),
                ("How boldly does it learn?", "Careful"),
            ):
                await fingers.at(title)
                await fingers.press(choice)
            await fingers.at("When does it learn?")
            assert await ada.page.locator("#asked input").input_value() == "02:15"
            await fingers.press("Continue")
            await fingers.at("Ready")
            assert not await ada.scrolls_sideways()
            await fingers.press("Write this, and start it later")
            await ada.page.get_by_role("heading", name="Done. You can close this page.").wait_for()
        assert await asyncio.to_thread(program.ends) == 0
    written = (home / ".goodbot" / "config.toml").read_text()
    assert 'schedule = "02:15"' in written
    assert 'preset = "careful"' in written


async def test_who_has_gone_is_told_of(chromium: Any, program: SetupProgram) -> None:
    async with person(chromium) as ada:
        await ada.open(program.address)
        await Keys(ada).at("Where do people talk to it?")
        program.process.kill()
        await ada.page.get_by_role("alert").get_by_text("goodbot does not answer any more.").wait_for()
        await ada.page.locator("#asked[hidden]").wait_for(state="attached")


async def test_leaving_is_asked_about_and_writes_nothing(
    chromium: Any, program: SetupProgram, tmp_path: Path
) -> None:
    before = (tmp_path / "ada" / ".goodbot" / "config.toml").read_text()
    async with person(chromium, locale="de-DE") as ada:
        await ada.open(program.address)
        keys = Keys(ada)
        await keys.at("Wo spricht man mit ihm?")
        await keys.press("Abbrechen")
        await keys.press("Hier bleiben")
        await keys.press("Abbrechen")
        await keys.press("Abbrechen")
        await ada.page.get_by_role("heading", name="Es wurde nichts gespeichert.").wait_for()
    assert await asyncio.to_thread(program.ends) == 130
    assert (tmp_path / "ada" / ".goodbot" / "config.toml").read_text() == before


@pytest.mark.parametrize("viewport", [DESK, NARROW], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_stands_in_anybody_s_way(
    chromium: Any, program: SetupProgram, viewport: Any, scheme: Any
) -> None:
    if why := install.absent():
        missing(why)
    axe = program_of_axe()
    async with person(chromium, viewport=viewport, color_scheme=scheme) as ada:
        await ada.open(program.address)
        keys = Keys(ada)
        await keys.at("Where do people talk to it?")
        assert await violations(ada, axe) == []
        assert not await ada.scrolls_sideways()
        await keys.press("Telegram")
        await keys.at("The bot's token")
        await keys.type("hello")
        await ada.page.get_by_role("alert").get_by_text("That is no token").wait_for()
        assert await violations(ada, axe) == []
        assert not await ada.scrolls_sideways()
        await keys.press("Leave")
        assert await violations(ada, axe) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Discord", ["New App", "Token, Reset Token"]),
        (
            "Slack",
            ["Install to Workspace", "Bot User OAuth Token", "App-Level Tokens", "Signing Secret, Show"],
        ),
        ("Teams", ["Azure Bot", "Microsoft App ID", "Value, New client secret", "Microsoft Teams"]),
    ],
)
async def test_each_platform_has_its_drawings(
    chromium: Any, program: SetupProgram, name: str, shown: list[str]
) -> None:
    require({"Discord": "discord", "Slack": "slack_bolt", "Teams": "botbuilder.core"}[name])
    async with person(chromium, viewport=NARROW, has_touch=True, is_mobile=True) as ada:
        await ada.open(program.address)
        await ada.page.get_by_role("button", name=re.compile(f"^{name}")).tap()
        await ada.page.get_by_role("heading", name="The bot's token").wait_for()
        await ada.page.locator(".guide li svg").first.wait_for()
        assert await ada.page.locator(".guide li").count() >= 4
        drawn = ada.page.locator(".guide li svg")
        told = [str(await one.get_attribute("aria-label")) for one in await drawn.all()]
        assert len(told) == len(shown)
        assert all(what in one for what, one in zip(shown, told, strict=True)), told
        assert not await ada.scrolls_sideways()
