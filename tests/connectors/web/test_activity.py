# SPDX-License-Identifier: Apache-2.0
"""The page of what was done, of a whole goodbot: who gets it, and all of it by keyboard and touch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from tests.connectors.web.browsing import AROUND, LONG_DAY, NARROW, ZONE, focus, opens, person, press, types
from tests.connectors.web.test_ratings import wire
from tests.connectors.web.test_whole import goodbot, link
from tests.core.builders import Bot

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = ("/api/activity", "/api/activity/checked")


async def acted(bot: Bot) -> None:
    await bot.command("people", "grant talker loopback:carl")
    await bot.command("pause")
    await bot.command("pause", user="rater")


async def test_owners_get_it_over_the_wire_and_nobody_else_a_letter(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        await acted(bot)
        for path in PATHS:
            status, found = await wire(bot, unused_tcp_port, "owner", path=path)
            assert (status, '"entries"' in found or "loopback:carl" in found) == (200, True)
            for user in ("rater", "talker"):
                status, found = await wire(bot, unused_tcp_port, user, path=path)
                assert status == 400
                for kept in ("carl", "owner'", "pause", "entries", "hash"):
                    assert kept not in found, kept
        for query in ("?since=x", "?result=great", "?before=-1", f"?before={10**20}"):
            status, found = await wire(bot, unused_tcp_port, "owner", query, path=PATHS[0])
            assert (status, '"error"' in found) == (400, True)


async def whats(page: Any) -> list[str]:
    return await page.locator("#list summary strong").all_inner_texts()


async def test_an_owner_finds_an_entry_and_sees_what_was_changed_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await acted(bot)
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "Activity")
        await owner.sees("none changed.")
        assert await whats(owner.page) == [
            "Sign in to the browser",
            "Stop trainings for now",
            "Stop trainings for now",
            "Let somebody in",
        ]
        await focus(owner, "[name=result]")
        await owner.page.keyboard.press("r")
        await owner.sees("1 entry")
        assert "result=refused" in owner.page.url
        await owner.page.reload()
        await owner.sees("1 entry")
        await opens(owner, ".act summary")
        await owner.sees("not on the allowlist")
        await focus(owner, "[name=result]")
        await owner.page.keyboard.press("a")
        await types(owner, "[name=person]", "loopback:carl")
        await owner.sees("Let somebody in")
        await owner.sees("1 entry")
        assert await whats(owner.page) == ["Let somebody in"]
        async with aiosqlite.connect(bot.store.path) as db:
            await db.execute("UPDATE audit SET actor = 'loopback:else' WHERE seq = 1")
            await db.commit()
        await press(owner, "Check again")
        await owner.sees("entry 1 of 4 entries is not as it was written")
        await owner.page.locator(".act.broken").wait_for()
        assert not await owner.scrolls_sideways()


async def test_a_day_is_whole_and_of_the_readers_own_clock(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, timezone_id=ZONE) as owner:
        for number, at in enumerate(AROUND):
            await bot.command("people", f"grant talker loopback:carl{number}")
            await bot.store.write(
                lambda db, at=at: db.execute(
                    "UPDATE audit SET at = ? WHERE seq = (SELECT max(seq) FROM audit)", (at,)
                )
            )
        await owner.sign_in(await link(bot))  # an entry of today
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/activity")
        await owner.sees("5 entries")
        await owner.page.locator("[name=from]").fill(LONG_DAY)
        await owner.sees("4 entries")
        await owner.page.locator("[name=to]").fill(LONG_DAY)
        await owner.sees("2 entries")
        shown = await owner.page.locator("#list").text_content() or ""
        assert [number for number in range(4) if f"carl{number}" in shown] == [1, 2]
        await owner.page.reload()
        await owner.sees("2 entries")
        await owner.page.locator("[name=from]").fill("")
        await owner.sees("3 entries")


async def test_an_owner_opens_an_entry_by_touch_on_a_phone(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
    ):
        await acted(bot)
        await owner.sign_in(await link(bot))
        await owner.go_to("Activity")
        await owner.sees("4 entries")
        await owner.page.locator(".act summary").nth(3).tap()
        await owner.page.get_by_role("button", name="All of “people”").tap()
        await owner.sees("1 entry")
        assert "action=people" in owner.page.url
        assert not await owner.scrolls_sideways()


async def test_a_rater_is_told_that_it_is_for_owners(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        await acted(bot)
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        assert await rater.page.get_by_role("link", name="Activity").is_hidden()
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/activity")
        await rater.sees("Owners of this bot see here what was done.")
        assert await whats(rater.page) == []
        assert await rater.page.locator("#filters").is_hidden()
