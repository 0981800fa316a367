# SPDX-License-Identifier: Apache-2.0
"""The pages on a phone, by keyboard, for a screen reader; and with words that would be more than words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.commands import TABLE
from goodbot.api.events import CommandEvent
from goodbot.testing.connector_base import eventually

from tests.connectors.web.browsing import DESK, PHONE, Person, person, told, until
from tests.connectors.web.scripted import Scripted, waiting

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVIL = (
    "<script>window.broken=1</script>",
    "<img src=x onerror='window.broken=1'>",
    "[press](javascript:window.broken=1) and [this](data:text/html,<script>window.broken=1</script>)",
    "**<b onmouseover=window.broken=1>bold</b>** `<svg onload=window.broken=1>`",
    "```html\n</code></pre><script>window.broken=1</script>\n```",
    "- <iframe srcdoc='<script>parent.broken=1</script>'></iframe>",
    "> <style>*{display:none}</style>\n# <h1>&lt;i&gt;</h1>",
    "![x](http://127.0.0.1:9/pixel.png) http://127.0.0.1:9/\u202egnp.exe",
)


async def test_words_stay_words(ada: Person, bot: Scripted) -> None:
    for number, evil in enumerate(EVIL):
        bot.waiting.append(waiting(f"evil-{number}", evil, evil, connector="x<b>y"))
        bot.answers[evil] = evil
        await ada.ask(evil)
    await ada.page.get_by_label("Message", exact=True).fill(f"/rl {EVIL[0]}")
    await ada.page.keyboard.press("Enter")
    await ada.page.locator("article.command").wait_for()
    await harmless(ada)
    await ada.page.goto(f"{bot.address}/rate")
    await ada.page.locator(".card").wait_for()
    for _ in bot.waiting:
        await harmless(ada)
        await ada.key("s")


async def test_even_if_words_became_html_nothing_would_run(ada: Person, bot: Scripted) -> None:
    """The browser itself holds the page to goodbot's own files."""
    await ada.page.evaluate(
        """async () => {
          const script = document.createElement("script");
          script.textContent = "window.broken = 1";
          const image = "<img src='http://127.0.0.1:9/x.png' onerror='window.broken = 2'>";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend", image + "<b style='color: red'>x</b>");
          await fetch("http://127.0.0.1:9/").catch(() => { window.fetched = false; });
        }"""
    )
    assert await ada.page.evaluate("[window.broken, window.fetched]") == [None, False]
    assert len([text for text in ada.troubles if "Content Security Policy" in text]) >= 4
    ada.troubles.clear()


async def harmless(somebody: Person) -> None:
    page = somebody.page
    assert await page.evaluate("window.broken") is None
    assert await page.locator("main script, main iframe, main svg, main style, main h1 h1").count() == 0
    assert await page.locator("main img:not([src='/files/icon.svg'])").count() == 0
    links = await page.locator("main a[href]").evaluate_all("all => all.map(a => [a.protocol, a.rel])")
    assert all(scheme in ("http:", "https:") for scheme, _ in links)
    shown = await page.locator("main .words a").evaluate_all("all => all.map(a => a.textContent + a.rel)")
    assert all("\u202e" not in text and "noopener" in text for text in shown)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_a_phone(chromium: Any, bot: Scripted, scheme: Any, tmp_path: Path) -> None:
    word = "x" * 400
    bot.answers["long"] = f"{word}\n\n```\n{word}\n```\n\n`{word}` http://127.0.0.1/{word}"
    bot.waiting.append(waiting("t1", word, bot.answers["long"]))
    async with person(chromium, viewport=PHONE, color_scheme=scheme, is_mobile=True, has_touch=True) as ada:
        await ada.open(bot.link("ada"))
        assert not await ada.scrolls_sideways()
        await ada.page.get_by_role("button", name="Sign in").tap()
        await ada.page.locator("#sign-out").wait_for()
        await ada.page.get_by_role("link", name="Chat").tap()
        await ada.page.wait_for_url("**/")
        await ada.page.locator("#sign-out").wait_for()
        await ada.page.get_by_label("Message", exact=True).fill("long")
        await ada.page.get_by_role("button", name="Send").tap()
        await ada.page.locator("article.bot .rating").wait_for()
        await ada.page.get_by_role("button", name="Bad").tap()
        await ada.page.get_by_role("button", name="Say why").tap()
        button = await ada.page.get_by_role("button", name="Keep it").bounding_box()
        field = await ada.page.locator("#composer").bounding_box()
        assert button["y"] + button["height"] <= field["y"], "nothing of the form is hidden"
        assert not await ada.scrolls_sideways()
        await ada.page.screenshot(path=tmp_path / "chat.png")
        await ada.page.get_by_role("button", name="Conversations").tap()
        await ada.page.get_by_role("link", name="long").wait_for()
        await ada.page.goto(f"{bot.address}/rate")
        await ada.page.locator(".card").wait_for()
        assert not await ada.scrolls_sideways()
        small = await ada.page.locator("button:visible").evaluate_all(
            "all => all.filter(b => b.getBoundingClientRect().height < 24).length"
        )
        assert small == 0, "everything can be hit with a thumb"
        await ada.page.screenshot(path=tmp_path / "rate.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everything_has_a_name_and_enough_contrast(chromium: Any, bot: Scripted, scheme: Any) -> None:
    bot.waiting.append(waiting("t1", "Question?", "Answer."))
    async with person(chromium, viewport=DESK, color_scheme=scheme) as ada:
        await ada.come_back(bot, "ada")
        answer = await ada.ask("hello **bold** `code`")
        await answer.get_by_role("button", name="Bad").click()
        await answer.get_by_role("button", name="Tone").wait_for()
        for path, drawn in (("", "article.bot"), ("/rate", ".card"), ("/login", "#sign-in")):
            if path:
                await ada.page.goto(bot.address + path)
            await ada.page.locator(drawn).wait_for()
            assert await unnamed(ada) == []
            assert await ada.page.get_by_role("main").count() == 1
            assert await ada.page.get_by_role("heading", level=1).count() == 1
            assert await ada.page.evaluate(FAINT) == []


async def test_behind_a_slash_stands_what_can_be_typed(ada: Person, bot: Scripted) -> None:
    field = ada.page.get_by_label("Message", exact=True)
    rows = ada.page.get_by_role("option")
    await field.press_sequentially("/r")
    shown = await rows.locator("code").all_inner_texts()
    names = [text.split()[1] for text in shown if text.startswith("/rl ")]
    assert names
    assert set(names) <= {one.name for one in TABLE if "r" in one.name}
    assert "/rate" in shown, "a page"
    assert await unnamed(ada) == []
    await field.press("ArrowDown")
    marked = ada.page.locator('[role="option"][aria-selected="true"]')
    assert await field.get_attribute("aria-activedescendant") == await marked.get_attribute("id")
    await field.fill("/stat")
    await field.press("Tab")
    assert (await field.input_value()).strip() == "/rl status"
    assert await rows.count() == 0
    await field.press("Enter")
    await until(lambda: any(isinstance(one, CommandEvent) for one in bot.events))
    await field.fill("/hel")
    await rows.first.click()
    assert (await field.input_value()).strip().startswith("/rl help")
    await field.fill("/h")
    await field.press("Escape")
    assert await rows.count() == 0
    assert await field.input_value() == "/h", "the words stay"
    for words in ("/help", "/tmp/x", "/rl help all", "either/or"):
        await field.fill(words)
        assert await rows.count() == 0, words


async def test_nobody_is_offered_what_they_may_not_type(chromium: Any, bot: Scripted) -> None:
    bot.talkers.add("bob")
    async with person(chromium, viewport=PHONE, is_mobile=True, has_touch=True) as bob:
        await bob.come_back(bot, "bob")
        await bob.page.get_by_label("Message", exact=True).press_sequentially("/t")
        names = await bob.page.get_by_role("option").locator("code").all_inner_texts()
        assert names
        assert not [name for name in names if name.split()[1] in ("train", "people", "rollback")]
        assert not await bob.scrolls_sideways()


async def unnamed(somebody: Person) -> list[str]:
    """What Chromium's own accessibility tree has no name for, though a person acts on it."""
    session = await somebody.context.new_cdp_session(somebody.page)
    tree = await session.send("Accessibility.getFullAXTree")
    acts = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "dialog", "navigation"}
    return [
        str(node["role"]["value"])
        for node in tree["nodes"]
        if not node.get("ignored")
        and node.get("role", {}).get("value") in acts
        and not node.get("name", {}).get("value", "").strip()
    ]


FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest("noscript, :disabled, .visually-hidden, .skip, [aria-hidden]")) continue;
    let under = node;
    while (under && rgba(getComputedStyle(under).backgroundColor)[3] < 255) under = under.parentElement;
    const back = light(rgba(getComputedStyle(under ?? document.body).backgroundColor));
    const front = light(rgba(getComputedStyle(node).color));
    const ratio = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
    if (ratio < 4.5) found.push(`${node.className || node.tagName}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""


async def test_a_screen_reader_hears_the_answer_once(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    region = ada.page.locator("#announce")
    assert await region.get_attribute("aria-live") == "polite"
    await until_text(region, "goodbot: You said: hello")


async def until_text(place: Any, text: str) -> None:
    async def there() -> bool:
        return text in (await place.inner_text())

    await eventually(there)


async def test_the_keys_are_told(ada: Person, bot: Scripted) -> None:
    await ada.key("?")
    dialog = ada.page.get_by_role("dialog", name="Keyboard")
    await dialog.wait_for()
    words = await dialog.inner_text()
    assert all(word in words for word in ("Good", "Bad", "Give 1 to 5 stars", "New conversation"))
    await ada.page.keyboard.press("Escape")
    await dialog.wait_for(state="hidden")
    await ada.page.get_by_label("Message", exact=True).fill("")
    await ada.page.keyboard.type("g is a letter")
    assert told(bot) == [], "letters that are typed rate nothing"
