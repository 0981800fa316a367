# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot and a real Chromium: from a one-time link to ratings in the ledger."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import goodbot_connectors.web
import pytest
from goodbot.config import HttpConfig
from goodbot.daemon.control import execute
from goodbot.store import feedback
from goodbot.testing.connector_base import eventually

from tests.connectors.web.browsing import DESK, NARROW, person, press, pressed, tap
from tests.core.builders import Bot, open_bot, rows
from tests.training.zoo.dialects import CHATML

pytestmark = pytest.mark.asyncio(loop_scope="module")


@contextlib.asynccontextmanager
async def goodbot(home: Path, port: int, **options: Any) -> AsyncIterator[Bot]:
    sections = {"http": HttpConfig(port=port), "connectors": {"web": {}}}
    given: dict[str, Any] = {
        "extra": (goodbot_connectors.web,),
        "sections": sections,
        "terminal": True,
        **options,
    }
    async with open_bot(home, **given) as bot:
        yield bot


async def link(bot: Bot, *words: str) -> str:
    return (await execute(bot.app, "web", words)).text.splitlines()[0]


async def labels(bot: Bot) -> list[tuple[Any, ...]]:
    """Rater, thumb or stars alone, and stars beside a thumb, of what is rated."""
    return await rows(bot.store, "SELECT rater, value, stars FROM labels ORDER BY turn, rater")


async def label_is(bot: Bot, *expected: tuple[Any, ...]) -> None:
    async def so() -> bool:
        return await labels(bot) == list(expected)

    await eventually(so)


async def test_an_owner_talks_and_rates_and_finds_all_of_it_after_a_restart(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with person(chromium) as owner:
        async with goodbot(tmp_path, unused_tcp_port) as bot:
            await owner.sign_in(await link(bot))
            await owner.go_to("Chat")
            answer = await owner.ask("What is 2 + 2?")
            await owner.key("g")
            await owner.sees("Good. 1 of 8 ratings (7 to go).")
            await owner.key("b")
            await label_is(bot, (f"terminal:{os.geteuid()}", -1.0, None))
            await owner.key("2")
            await label_is(bot, (f"terminal:{os.geteuid()}", -1.0, -0.5))
            await owner.key("c")
            await owner.page.keyboard.type("Too short.")
            await owner.page.keyboard.press("Control+Enter")
            await owner.sees("Your reason is kept.")
            await owner.key("u")
            await label_is(bot)
            await answer.get_by_role("button", name="Bad").click()
            words = await answer.locator(".words").inner_text()
            await answer.get_by_role("button", name="Say it better").click()
            await owner.page.locator("article.bot .chip.bad[aria-pressed=false]").wait_for()
            retries = await rows(bot.store, "SELECT hint FROM retries")
            assert retries == [("better",)]
            assert await owner.page.locator("article.bot").count() == 1
            await owner.key("e")
            await owner.page.keyboard.type("It is four.")
            await owner.page.keyboard.press("Control+Enter")
            await owner.sees("Your better answer is kept.")
            ids = [turn for (turn,) in await rows(bot.store, "SELECT id FROM turns")]
            remarks = await bot.store.read(lambda db: feedback.remarks(db, ids))
            assert "It is four." in str(remarks)
        await owner.sees("goodbot cannot be reached.")
        await owner.page.get_by_label("Message", exact=True).fill("And 3 + 3?")
        await owner.page.keyboard.press("Enter")
        await owner.sees("Not sent yet.")
        async with goodbot(tmp_path, unused_tcp_port) as bot:
            await owner.page.locator("article.bot .rating").nth(1).wait_for()
            await owner.page.locator("#banner").wait_for(state="hidden")
            asked = await rows(bot.store, "SELECT count(*) FROM turns WHERE connector = 'web'")
            assert asked == [(3,)], "the question, its other answer, and the one of meanwhile"
            await owner.page.reload()
            await owner.page.locator("article.bot .rating").nth(1).wait_for()
            assert words


async def test_a_rater_from_a_chat_rates_what_was_said_elsewhere(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as rater:
        await bot.command("enable", channel="#lab")
        for question in ("First?", "Second?"):
            await bot.say(question, user="talker", channel="#lab")
        await bot.say("The owner's own?")
        said = await bot.command("web", user="rater")
        found = re.search(r"http://\S+", said)
        assert found is not None
        await rater.sign_in(found[0])
        assert await rater.page.locator("#user").inner_text() == "loopback:rater"
        await rater.go_to("To rate")
        await rater.sees("Second?")
        await rater.key("g")
        await rater.sees("1 of 8 ratings (7 to go)")
        await rater.sees("First?")
        await rater.key("1")
        await rater.sees("All rated")
        await rater.sees("1 of 5 stars. 2 of 8 ratings (6 to go).")
        bar = rater.page.get_by_role("progressbar", name="2 of 8 ratings (6 to go)")
        assert await bar.get_attribute("value") == "2"
        assert await rater.page.get_by_text("The owner's own?").count() == 0
        assert sorted(value for _, value, _ in await labels(bot)) == [-1.0, 1.0]
        assert {who for who, _, _ in await labels(bot)} <= {"loopback:rater", "web:loopback:rater"}
        await rater.page.get_by_role("combobox", name="Which").select_option("already rated")
        await rater.sees("Second?")
        await pressed(rater.page.locator(".card"), "Good").wait_for()


async def test_a_command_and_its_confirmation(chromium: Any, tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await owner.sign_in(await link(bot))
        await owner.go_to("Chat")
        await owner.ask("Keep this?")
        field = owner.page.get_by_label("Message", exact=True)
        await field.fill("/rl status")
        await owner.page.keyboard.press("Enter")
        await owner.sees("/rl status")
        await field.fill("/rl good")
        await owner.page.keyboard.press("Enter")
        await label_is(bot, (f"terminal:{os.geteuid()}", 1.0, None))
        await pressed(owner.page.locator("article.bot"), "Good").wait_for()
        await field.fill("/rl reset")
        await owner.page.keyboard.press("Enter")
        await owner.page.get_by_role("button", name="Yes, begin anew").click()
        await pressed(owner.page.locator("article.bot"), "Good").wait_for(state="detached")
        await field.fill("/rl forget me")
        await owner.page.keyboard.press("Enter")
        await owner.page.get_by_role("group", name="Choices").get_by_role("button").first.click()
        await owner.page.get_by_role("heading", name="You are forgotten").wait_for()
        assert await rows(bot.store, "SELECT count(*) FROM turns") == [(0,)]
        left = await rows(bot.store, "SELECT key, value FROM connector_values WHERE connector = 'web'")
        assert "Keep this?" not in str(left)
        assert "owner" not in str(left)


@pytest.mark.parametrize(("viewport", "act"), [(DESK, press), (NARROW, tap)], ids=["keyboard", "touch"])
async def test_notes_are_read_edited_switched_and_deleted(
    chromium: Any, tmp_path: Path, unused_tcp_port: int, viewport: Any, act: Any
) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=viewport, has_touch=act is tap) as owner,
    ):
        await owner.sign_in(await link(bot))
        await owner.go_to("Notes")
        await owner.sees("No notes")
        await owner.go_to("Chat")
        await owner.page.locator("#sign-out").wait_for()
        await owner.page.get_by_label("Message", exact=True).fill("What is love?")
        await owner.page.get_by_role("button", name="Send").click()  # by touch, Enter makes a line
        answer = owner.page.locator("article.bot").last
        await answer.get_by_role("button", name="Bad").click()
        await answer.get_by_role("button", name="Too long").click()
        await owner.page.locator("article.bot .chip.bad[aria-pressed=false]").wait_for()
        await owner.go_to("Notes")
        await owner.sees("Answer briefly, in fewer words.")
        await owner.sees("from 1 rating")
        assert not await owner.scrolls_sideways()
        await act(owner, "Edit")
        await owner.page.keyboard.press("Control+A")  # the field has the focus
        await owner.page.keyboard.insert_text("Two <b>words</b>, \u202eplease")
        await act(owner, "Save")
        await owner.sees("Two b words /b , please")
        await owner.sees("in your words")
        await act(owner, "Switch off")
        await owner.sees("off, in your words")
        assert await rows(bot.store, "SELECT text, used FROM notes") == [("Two b words /b , please", 0)]
        await act(owner, "Switch on")
        await owner.page.get_by_role("button", name="Switch off").wait_for()
        await act(owner, "Delete")
        await owner.sees("No notes")
        assert await rows(bot.store, "SELECT * FROM notes") == []
