# SPDX-License-Identifier: Apache-2.0
"""A real Chromium, headless, and a person in front of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

from goodbot.api.events import RatingEvent
from goodbot.testing.connector_base import eventually

from tests.connectors.web.scripted import Scripted
from tests.support import chromium as find_chromium
from tests.support import patience, require

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
NARROW = {"width": 390, "height": 844}
ZONE = "America/New_York"
LONG_DAY = "2024-11-03"
"""There it has 25 hours."""
AROUND = (1_730_606_399.0, 1_730_606_400.0, 1_730_696_399.0, 1_730_696_400.0)
"""Seconds since the epoch: the last of the day before, its own first and last, the first one after it."""
GIVES = """(at, [how, ...parts]) => {
  const data = new DataTransfer();
  if (parts.includes("file")) data.items.add(new File(["words"], "notes.txt", { type: "text/plain" }));
  if (parts.includes("text")) data.setData("text/plain", "words");
  const all = { bubbles: true, cancelable: true };
  const send = (name) => !at.dispatchEvent(how === "paste"
    ? new ClipboardEvent(name, { ...all, clipboardData: data })
    : new DragEvent(name, { ...all, dataTransfer: data }));
  return how === "paste" ? send("paste") : [send("dragover"), send("drop")].every(Boolean);
}"""
"""Something is dropped or pasted at an element, as the browser would tell it."""


class Person:
    """Somebody with one browser of their own: separate cookies, as many tabs as they open.

    `page` is playwright's; `troubles` is what the pages complained of: none is expected.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self.page: Any = None
        self.troubles: list[str] = []

    async def open(self, url: str) -> Any:
        """A new tab there."""
        self.page = await self.context.new_page()
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._heard)
        await self.page.goto(url)
        return self.page

    def _heard(self, message: Any) -> None:
        away = ("Failed to load resource", "WebSocket connection to")  # while goodbot is not there
        if message.type == "error" and not message.text.startswith(away):
            self.troubles.append(message.text)

    async def sign_in(self, link: str) -> None:
        """Open a one-time link, press the button, and wait for the page on which this person lands."""
        await self.open(link)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.locator("#sign-out").wait_for()

    async def come_back(self, bot: Scripted, user: str) -> None:
        """Open the chat with the cookie of an earlier visit."""
        cookie = {
            "name": f"goodbot-{bot.address.rpartition(':')[2]}",
            "url": bot.address,
            "value": await bot.connector._sessions.begin(user),
            "httpOnly": True,
            "sameSite": "Strict",
        }
        await self.context.add_cookies([cookie])
        await self.open(bot.address)
        await self.page.locator("#sign-out").wait_for()

    async def go_to(self, name: str) -> None:
        """Another page, by the links at the top or the menu beside them."""
        nav = self.page.get_by_role("navigation", name="Pages")
        link = nav.get_by_role("link", name=name, exact=True)
        await nav.get_by_role("link").first.wait_for()
        if not await link.is_visible():
            await nav.get_by_role("button", name="More pages").click()
        path = await link.get_attribute("href")
        await link.click()
        await self.page.wait_for_url(lambda url: urlsplit(url).path == path)

    async def ask(self, text: str) -> Any:
        """Type a question and wait for the whole answer; its article."""
        await self.page.locator("#sign-out").wait_for()  # else Enter may come before the page listens
        before = await self.page.locator("article.bot .rating").count()
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.keyboard.press("Enter")
        await self.page.locator("article.bot .rating").nth(before).wait_for()
        return self.page.locator("article.bot").last

    async def key(self, *keys: str) -> None:
        """Leave whatever field it is, and press these."""
        await self.page.evaluate("document.activeElement.blur()")
        for key in keys:
            await self.page.keyboard.press(key)

    async def sees(self, text: str) -> None:
        """Wait until this is on the page, to be seen; what was only read aloud may be gone from it."""
        read_aloud = self.page.locator(":not(#announce)")
        await self.page.get_by_text(text).and_(read_aloud).locator("visible=true").first.wait_for()

    async def gives(self, how: str, *parts: str, at: str = "#words") -> bool:
        """Drop or paste (`how`) what `parts` name, file or text; whether the page keeps it to itself."""
        return await self.page.locator(at).evaluate(GIVES, [how, *parts])

    async def scrolls_sideways(self) -> bool:
        return await self.page.evaluate("document.documentElement.scrollWidth > innerWidth")


def _named(name: str) -> str:
    return f'a:text-is("{name}"), summary:text-is("{name}"), button:enabled:text-is("{name}")'


async def press(somebody: Person, name: str) -> None:
    """Go to a button or link with the Tab key alone, as often as need be, and press it."""
    await somebody.page.locator(_named(name)).locator("visible=true").first.wait_for()
    for _ in range(60):
        await somebody.page.keyboard.press("Tab")
        if await somebody.page.evaluate("document.activeElement.textContent") == name:
            await somebody.page.keyboard.press("Enter")
            return
    raise AssertionError(f"no key leads to {name!r}")


async def tap(somebody: Person, name: str) -> None:
    """Touch a button or link."""
    await somebody.page.locator(_named(name)).locator("visible=true").first.tap()


async def focus(somebody: Person, selector: str, most: int = 80) -> None:
    """Go there with the Tab key alone."""
    await somebody.page.locator(selector).first.wait_for()
    for _ in range(most):
        if await somebody.page.evaluate("(there) => document.activeElement.matches(there)", selector):
            return
        await somebody.page.keyboard.press("Tab")
    raise AssertionError(f"no key leads to {selector!r}")


async def opens(somebody: Person, selector: str) -> None:
    """Go there with the Tab key alone, and press Enter."""
    await focus(somebody, selector)
    await somebody.page.keyboard.press("Enter")


async def types(somebody: Person, selector: str, words: str) -> None:
    """Go to a field with the Tab key alone, and put these words in the place of those there."""
    await focus(somebody, selector)
    await somebody.page.keyboard.press("Control+A")
    await somebody.page.keyboard.press("Delete")
    await somebody.page.keyboard.type(words)


def pressed(article: Any, name: str) -> Any:
    """The button of this name, if it is pressed."""
    return article.locator(f'button[aria-pressed="true"]:has-text("{name}")')


@contextlib.asynccontextmanager
async def launched() -> AsyncIterator[Any]:
    """A Chromium; skips with the reason where there is none, or no playwright."""
    api = require("playwright.async_api")
    path = find_chromium()
    async with api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def person(browser: Any, **options: Any) -> AsyncIterator[Person]:
    """Somebody with a fresh profile."""
    # Without a worker, unless it is the worker that is tested: else `page.route` would not see its requests.
    usual = {"viewport": DESK, "reduced_motion": "reduce", "service_workers": "block"}
    context = await browser.new_context(**{**usual, **options})
    context.set_default_timeout(1000 * patience(15))
    somebody = Person(context)
    yield somebody
    await context.close()
    assert not somebody.troubles, somebody.troubles


def told(bot: Scripted) -> list[RatingEvent]:
    """What the core was told of answers, oldest first."""
    return [event for event in bot.events if isinstance(event, RatingEvent)]


async def until(look: Callable[[], object]) -> None:
    """Wait for something that a press sets off."""

    async def seen() -> bool:
        return bool(look())

    await eventually(seen)
