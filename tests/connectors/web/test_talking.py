# SPDX-License-Identifier: Apache-2.0
"""What can be done with what was said, beside rating it: in a real Chromium, by keyboard and by touch."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import MessageEvent, PressEvent
from goodbot.api.model import DEMO_LABEL

from tests.connectors.web.browsing import PHONE, Person, person, pressed, told
from tests.connectors.web.scripted import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

NARROW = {"width": 390, "height": 844}
FORBIDDEN = "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }"
ABSENT = "() => { Object.defineProperty(navigator, 'clipboard', { value: undefined }); }"
"""As where the page comes without https."""


async def pasted(somebody: Person) -> str:
    """What is in the clipboard."""
    field = somebody.page.get_by_label("Message", exact=True)
    await field.fill("")
    await field.press("Control+v")
    return await field.input_value()


@pytest.mark.parametrize("refusal", ["() => {}", FORBIDDEN, ABSENT], ids=["allowed", "forbidden", "absent"])
async def test_an_answer_is_copied_as_it_was_written(ada: Person, bot: Scripted, refusal: str) -> None:
    await ada.page.evaluate(refusal)
    bot.answers["list"] = "**Two**:\n\n- a\n- b\n\n```sh\nls\n```"
    answer = await ada.ask("list")
    await answer.locator(".foot").get_by_role("button", name="Copy").press("Enter")
    await answer.get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == bot.answers["list"]
    await answer.locator(".code").get_by_role("button", name="Copy").click()
    await until_text(ada, "#announce", "Copied")
    assert await pasted(ada) == "ls"
    await ada.page.get_by_label("Message", exact=True).fill("")
    await ada.key("y")
    await answer.locator(".foot").get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == bot.answers["list"]
    assert told(bot) == []


async def until_text(somebody: Person, selector: str, text: str) -> None:
    await somebody.page.locator(selector).filter(has_text=text).wait_for(state="attached")


async def test_an_answer_that_nobody_rated_is_tried_again_once(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    bot.wait_at = 0
    bot.go_on.clear()
    again = answer.get_by_role("button", name="Try again")
    await again.press("Enter")
    await again.press("Enter")  # it is on its way already
    bot.go_on.set()
    await ada.sees("Here is another answer.")
    assert await ada.page.get_by_text("You said: hello").count() == 0
    [press] = [event for event in bot.events if isinstance(event, PressEvent)]
    assert press.action == "again:better"
    await ada.key("y")
    await answer.get_by_role("button", name="Copied").wait_for()
    assert await pasted(ada) == "Here is another answer.", "the one that is there"


async def test_who_may_not_rate_copies_and_is_not_offered_another(chromium: Any, bot: Scripted) -> None:
    bot.talkers = {"bob"}
    async with person(chromium, viewport=PHONE, has_touch=True) as bob:
        await bob.come_back(bot, "bob")
        await bob.page.get_by_label("Message", exact=True).fill("hello")
        await bob.page.get_by_role("button", name="Send").tap()
        answer = bob.page.locator("article.bot")
        await bob.sees("You said: hello")
        assert await answer.get_by_role("button", name="Try again").count() == 0
        await answer.get_by_role("button", name="Copy").tap()
        await answer.get_by_role("button", name="Copied").wait_for()
        assert not await bob.scrolls_sideways()


async def test_a_conversation_is_renamed_and_deleted_by_keyboard(ada: Person, bot: Scripted) -> None:
    await ada.ask("About cats")
    first = ada.page
    await ada.open(first.url)  # another tab shows it, too
    await ada.sees("You said: About cats")
    page = ada.page
    menu = page.get_by_role("button", name="Rename, save or delete “About cats”")
    await menu.press("Enter")
    await menu.evaluate("one => { one.dataset.before = '1'; }")
    bot.connector._live.stale("ada")  # the list is drawn anew meanwhile
    await page.locator("[data-before]").wait_for(state="detached")
    await page.get_by_label("Name", exact=True).fill("  My   pets ")
    await page.keyboard.press("Enter")
    menu = page.get_by_role("button", name="Rename, save or delete “My pets”")
    await menu.wait_for()
    assert await menu.evaluate("one => one === document.activeElement"), "the focus is where it was"
    await menu.press("Enter")
    async with page.expect_download() as saved:
        await page.get_by_role("button", name="Save as a file").press("Enter")
    assert (await saved.value).suggested_filename == "My pets.md"
    lines = Path(await (await saved.value).path()).read_text("utf-8").splitlines()
    assert lines[0] == "# My pets"
    assert [line for line in lines if "cats" in line] == ["About cats", "You said: About cats"]
    await page.reload()
    await menu.press("Enter")
    await page.get_by_role("button", name="Delete…").press("Enter")
    await ada.sees("Ratings stay, with their questions and answers.")
    await page.keyboard.press("Enter")  # on "Cancel"
    assert not await page.locator("#arrange").is_visible()
    await menu.press("Enter")
    await page.get_by_role("button", name="Delete…").press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).press("Enter")
    for tab in (page, first):
        await tab.get_by_text("Nothing yet.").wait_for()
        await tab.get_by_text("You said: About cats").wait_for(state="detached")
    await ada.ask("About dogs")
    asked = [event for event in bot.events if isinstance(event, MessageEvent)]
    assert asked[0].channel.thread != asked[1].channel.thread


async def test_conversations_are_searched_by_keyboard(ada: Person, bot: Scripted) -> None:
    bot.answers["Which?"] = "The <b>needle</b> is here."
    await ada.ask("Which?")
    await ada.page.get_by_role("button", name="New conversation").click()
    await ada.ask("Other")
    field, listed = ada.page.get_by_label("Search my conversations"), ada.page.locator("#conversations li")
    await field.fill("NEEDLE")
    await until_text(ada, "#announce", "1 conversation found")
    assert await listed.locator(".title").all_inner_texts() == ["Which?"]
    assert await listed.locator(".excerpt").inner_text() == "The <b>needle</b> is here."
    await listed.get_by_role("link").press("Enter")
    await ada.sees("The <b>needle</b> is here.")
    await field.fill("%")
    await ada.sees("Nothing found.")
    await field.press("Escape")
    await listed.nth(1).wait_for()
    assert await listed.count() == 2


async def test_a_conversation_is_found_and_deleted_by_touch(chromium: Any, bot: Scripted) -> None:
    async with person(chromium, viewport=NARROW, is_mobile=True, has_touch=True) as bob:
        await bob.come_back(bot, "bob")
        for text in ("About cats", "About dogs"):
            await bob.page.get_by_label("Message", exact=True).fill(text)
            await bob.page.get_by_role("button", name="Send").tap()
            await bob.sees(f"You said: {text}")
        await bob.page.get_by_role("button", name="Conversations", exact=True).tap()
        await bob.page.get_by_label("Search my conversations").fill("dogs")
        await bob.sees("You said: About dogs")
        await bob.page.get_by_role("button", name="Rename, save or delete “About cats”").tap()
        await bob.page.get_by_role("button", name="Delete…").tap()
        assert not await bob.scrolls_sideways()
        await bob.page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).tap()
        await bob.sees("Ask anything.")
        assert "About dogs" not in str(bot._values)


TABLE = """Prices:
| what | **each** | all |
|:-----|---------:|:---:|
| a \\| b | 1 | <b>2</b> |
| short |
| one | two | three | four |

not | a table
---
"""


async def test_a_table_is_shown_as_one_and_one_s_own_words_as_they_were_typed(
    ada: Person, bot: Scripted
) -> None:
    bot.answers[TABLE.strip()] = TABLE
    answer = await ada.ask(TABLE)
    table = answer.locator("table")
    assert await table.locator("th").all_inner_texts() == ["what", "each", "all"]
    rows = [await row.locator("td").all_inner_texts() for row in await table.locator("tbody tr").all()]
    assert rows == [["a | b", "1", "<b>2</b>"], ["short"], ["one", "two", "three"]]
    assert await table.locator("td.right").all_inner_texts() == ["1", "two"]
    assert await answer.locator(".words > p").all_inner_texts() == ["Prices:", "not | a table\n---"]
    own = ada.page.locator("article.you .words")
    assert await own.inner_text() == TABLE.strip()
    assert await own.locator("*").count() == 0


async def test_a_huge_table_holds_no_more_cells_than_letters(ada: Person, bot: Scripted) -> None:
    bot.answers["wide"] = "\n".join(["|" * 4000, "|-" * 3999 + "|", *["|x"] * 2000])
    answer = await ada.ask("wide")
    assert await answer.locator("td").count() == 2000


async def test_light_and_dark_are_chosen_and_remembered(ada: Person, bot: Scripted) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await ada.page.evaluate(ground)
    await ada.page.emulate_media(color_scheme="dark")
    await ada.page.wait_for_function(f"{ground} !== '{light}'")  # as the system has it
    dark = await ada.page.evaluate(ground)
    await ada.page.get_by_role("button", name="Colours: as the system").press("Enter")
    await ada.page.get_by_role("button", name="Colours: light").wait_for()
    assert await ada.page.evaluate(ground) == light
    await ada.page.goto(f"{bot.address}/rate")
    assert await ada.page.evaluate(ground) == light, "on each page"
    other = await ada.open(bot.address)
    await other.get_by_role("button", name="Colours: light").press("Enter")
    assert await other.evaluate(ground) == dark
    await other.emulate_media(color_scheme="light")
    assert await other.evaluate(ground) == dark
    await other.get_by_role("button", name="Colours: dark").press("Enter")
    assert await other.evaluate(ground) == light


async def test_every_page_asks_for_its_colours_before_it_is_drawn() -> None:
    pages = files("goodbot_connectors.web") / "pages"
    for page in [one for one in pages.iterdir() if one.name.endswith(".html")]:
        assert '<script src="/files/theme.js"></script>\n  <link rel="stylesheet"' in page.read_text("utf-8")


async def test_a_demo_model_has_a_badge_and_its_words_stay_its_own(ada: Person, bot: Scripted) -> None:
    bot.answers["hello"] = f"{DEMO_LABEL}Hi there!"
    bot.answers["real"] = "Hi there!"
    answer = await ada.ask("hello")
    for _ in range(2):
        assert await answer.locator(".words").inner_text() == "Hi there!"
        assert await answer.locator(".who .badge").inner_text() == "demo model"
        await answer.locator(".foot").get_by_role("button", name="Copy").click()
        assert await pasted(ada) == "Hi there!"
        await ada.page.reload()
        await ada.sees("Hi there!")
    answer = await ada.ask("real")
    assert await answer.locator(".words").inner_text() == "Hi there!"
    assert not await answer.locator(".badge").is_visible()
    await ada.page.get_by_label("Search my conversations").fill("demo model")
    await ada.sees("Nothing found.")


async def test_the_controls_of_older_answers_are_folded_on_a_phone(chromium: Any, bot: Scripted) -> None:
    async with person(chromium, viewport=NARROW, is_mobile=True, has_touch=True) as bob:
        await bob.come_back(bot, "bob")
        for text in ("one", "two"):
            await bob.page.get_by_label("Message", exact=True).fill(text)
            await bob.page.get_by_role("button", name="Send").tap()
            await bob.sees(f"You said: {text}")
            await bob.page.locator("article.bot .rating").last.get_by_role("button", name="Good").tap()
        old, new = bob.page.locator("article.bot").first, bob.page.locator("article.bot").last
        shown = await old.get_by_role("button").locator("visible=true").all_inner_texts()
        assert [text.split()[-1] for text in shown] == ["Good", "More", "Copy"], "and what was said of it"
        assert await new.get_by_role("button", name="Say why").is_visible()
        await old.get_by_role("button", name="More").tap()
        await old.get_by_role("button", name="Say why").tap()
        await bob.page.get_by_label("What was wrong, or right?").fill("Nice.")
        await bob.page.get_by_role("button", name="Keep it").tap()
        await bob.sees("Your reason is kept.")
        assert not await bob.scrolls_sideways()


async def test_the_last_message_is_edited_and_sent_again(ada: Person, bot: Scripted) -> None:
    await ada.ask("helo")
    first = ada.page.locator("article.bot").first
    await first.get_by_role("button", name="Bad").click()
    field = ada.page.get_by_label("Message", exact=True)
    await field.press("ArrowUp")
    assert await field.input_value() == "helo"
    await field.fill("hello")
    await field.press("Enter")
    await ada.sees("You said: hello")
    await pressed(first, "Bad").wait_for()
    assert [event.text for event in bot.events if isinstance(event, MessageEvent)] == ["helo", "hello"]
    await field.fill("a draft")
    edits = ada.page.get_by_role("button", name="Edit").locator("visible=true")
    assert await edits.count() == 1, "of the last alone"
    await edits.press("Enter")
    assert await field.input_value() == "hello\na draft", "nothing that was typed is lost"
