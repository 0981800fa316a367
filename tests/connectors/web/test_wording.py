# SPDX-License-Identifier: Apache-2.0
"""The pages speak their reader's language, whole, and on a phone, too."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from goodbot.api.texts import LANGUAGES, say
from goodbot_connectors.web.wording import filled, wording

from tests.connectors.web.browsing import Person, person, pressed
from tests.connectors.web.scripted import Scripted
from tests.connectors.web.test_axe import DONE, REPORT, SET

pytestmark = pytest.mark.asyncio(loop_scope="module")

NARROW = {"width": 390, "height": 844}
REGION = {"en": "en-GB", "pt": "pt-BR", "zh": "zh-CN"}
UNFILLED = re.compile(r"undefined|\bpage_\w|[{}]")


@pytest_asyncio.fixture(loop_scope="module")
async def stranger(bot: Scripted) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(bot.address) as http:
        yield http


async def shown(somebody: Person) -> str:
    """All that is there to read, seen or heard."""
    return await somebody.page.evaluate("""
        [document.title, document.body.textContent, ...[...document.querySelectorAll("*")].flatMap((one) =>
            ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name) ?? ""))].join(" ")
    """)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_who_chats_and_rates_reads_their_own_language(
    chromium: Any, bot: Scripted, language: str
) -> None:
    async with person(chromium, locale=REGION.get(language, language), viewport=NARROW) as ada:
        await ada.come_back(bot, f"ada-{language}")
        assert await ada.page.locator("html").get_attribute("lang") == language
        await ada.page.get_by_label(say("page_message", language), exact=True).fill("hello")
        await ada.page.keyboard.press("Enter")
        answer = ada.page.locator("article.bot").last
        good = say("page_good", language)
        await answer.get_by_role("button", name=good, exact=True).click()
        await pressed(answer, good).wait_for()
        assert (
            await answer.get_by_role("button", name=good, exact=True).get_attribute("title") == f"{good} (g)"
        )
        assert await ada.gives("drop", "file")
        await ada.page.get_by_role("dialog", name=say("page_no_files", language)).wait_for()
        assert not await ada.scrolls_sideways()
        assert not UNFILLED.search(await shown(ada))
        await ada.page.goto(f"{bot.address}/rate")
        await ada.page.get_by_role("heading", name=say("page_answers_to_rate", language)).wait_for()
        await ada.page.locator("#card > *").wait_for()
        assert await ada.page.title() == f"{say('page_to_rate', language)} · goodbot"
        assert not await ada.scrolls_sideways()
        assert not UNFILLED.search(await shown(ada))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "path", ["progress", "versions", "people", "notes", "ratings", "report", "activity", "settings"]
)
async def test_a_page_says_all_of_it_in_its_language(
    chromium: Any, bot: Scripted, language: str, path: str
) -> None:
    async with person(chromium, locale=REGION.get(language, language), viewport=NARROW) as ada:
        await ada.come_back(bot, f"ada-{language}")
        await ada.page.goto(f"{bot.address}/{path}")
        await ada.page.locator("#sign-out").wait_for()
        title = "page_rated_answers" if path == "ratings" else f"page_{path}"
        heading = ada.page.get_by_role("heading", name=say(title, language))
        await heading.first.wait_for()
        assert await ada.page.locator("html").get_attribute("lang") == language
        assert not await ada.scrolls_sideways()
        assert not UNFILLED.search(await shown(ada))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_owners_read_has_no_english_left(chromium: Any, bot: Scripted, language: str) -> None:
    """With a report, entries and settings on the pages, and all of it open."""
    own = "as they say it"
    names = {"groups": {"language": {"German": own}}}
    parts = [replace(one, data={**one.data, "names": names.get(one.name, {})}) for one in REPORT.parts]
    bot.reported, bot.trail, bot.set_up = replace(REPORT, parts=parts), DONE, SET
    mine = wording(language)
    english = [
        text
        for key, text in wording("en").items()
        if isinstance(text, str) and "{" not in text and " " in text and mine[key] != text
    ]
    async with person(chromium, locale=REGION.get(language, language), viewport=NARROW) as ada:
        await ada.come_back(bot, f"ada-{language}")
        for path, begun, opened in (
            ("report", ".flag", ".pair"),
            ("activity", ".act", ".act dl"),
            ("settings", ".setting", ".place"),
        ):
            await ada.page.goto(f"{bot.address}/{path}")
            await ada.page.locator(begun).first.wait_for(state="attached")
            for line in await ada.page.locator("summary").all():
                await line.click()
            await ada.page.locator(opened).first.wait_for()
            there = await shown(ada)
            assert not UNFILLED.search(there), path
            assert [text for text in english if text in there] == [], path
            assert (own in there) == (path == "report")
            assert not await ada.scrolls_sideways(), path


async def test_numbers_and_dates_are_in_the_readers_manner(chromium: Any, bot: Scripted) -> None:
    bot.reported, bot.trail = REPORT, DONE
    async with person(chromium, locale="de-DE", viewport=NARROW) as ada:
        await ada.come_back(bot, "ada")
        await ada.page.goto(f"{bot.address}/report")
        await ada.page.get_by_text("Jede Version", exact=True).click()
        cells = ada.page.locator(".wide-table tbody tr").first.locator("td")
        assert (await cells.all_inner_texts())[1] == "4,2 (5)"
        await ada.page.goto(f"{bot.address}/activity")
        await ada.page.locator(".act summary").first.click()
        assert "Januar 2027" in await ada.page.locator(".act dd").first.inner_text()


async def test_who_has_not_signed_in_is_told_how_in_their_language(chromium: Any, bot: Scripted) -> None:
    async with person(chromium, locale="fr-CA") as ada:
        await ada.open(f"{bot.address}/login")
        await ada.page.get_by_role("button", name="Se connecter").wait_for()
        assert await ada.page.locator("#how code").all_inner_texts() == ["goodbot web", "/rl web"]
        await ada.page.goto(bot.address)
        await ada.page.get_by_role("heading", name="Connecte-toi à goodbot").wait_for()
        assert await ada.page.locator("main code").all_inner_texts() == ["goodbot web", "/rl web"]


async def test_who_reads_none_of_the_languages_gets_english(chromium: Any, bot: Scripted) -> None:
    async with person(chromium, locale="nl-NL") as ada:
        await ada.open(f"{bot.address}/login")
        await ada.page.get_by_role("button", name="Sign in").wait_for()
        assert await ada.page.locator("html").get_attribute("lang") == "en"


async def test_a_page_is_kept_for_each_language(stranger: aiohttp.ClientSession) -> None:
    """A browser whose language is changed gets the page anew."""
    tags: dict[str, str] = {}
    for language in ("de", "fr"):
        async with stranger.get("/login", headers={"Accept-Language": language}) as response:
            assert f'<html lang="{language}">' in await response.text()
            assert response.headers["Vary"] == "Accept-Language"
            tags[language] = response.headers["ETag"]
    assert tags["de"] != tags["fr"]
    for language, status in (("de", 304), ("fr", 200)):
        headers = {"Accept-Language": language, "If-None-Match": tags["de"]}
        async with stranger.get("/login", headers=headers) as response:
            assert response.status == status


@pytest.mark.parametrize("language", LANGUAGES)
async def test_texts_are_data_of_the_page(language: str) -> None:
    """As a browser reads them: up to the first end of a script."""
    scripts = " ".join(f'"{key}"' for key in wording(language))
    page = filled("<i>${page_send}</i>${texts}", language, scripts)
    data = page.partition('id="texts">')[2].partition("</script>")[0]
    assert json.loads(data) == wording(language)
    assert page.startswith(f"<i>{say('page_send', language)}</i>")
    assert "<" not in data


async def test_words_are_no_html(monkeypatch: pytest.MonkeyPatch) -> None:
    def only(_language: str) -> dict[str, str]:
        return {"page_a": '</script><b title="x">`<i>`'}

    monkeypatch.setattr("goodbot_connectors.web.wording.catalogue", only)
    page = filled('<p title="${page_a}">${page_a}</p>${texts}', "en", 'say("page_a")')
    assert page.count("<b") == page.count("<i>") == 0
    assert page.count("</script>") == 1
    assert "<code>&lt;i&gt;</code>" in page


async def test_a_page_that_names_an_unknown_text_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled("${page_nobody_wrote_this}", "de", "")


async def test_a_page_carries_the_texts_of_its_scripts_only(stranger: aiohttp.ClientSession) -> None:
    async with stranger.get("/login") as response:
        data = (await response.text()).partition('id="texts">')[2].partition("</script>")[0]
    assert json.loads(data).keys() == {"page_away", "page_starting", "page_refused"}
