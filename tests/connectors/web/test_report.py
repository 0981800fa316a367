# SPDX-License-Identifier: Apache-2.0
"""The page of the report, of a whole goodbot: who gets it, and all of it by keyboard and touch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import goodbot_connectors.web
import pytest
from goodbot.config import HttpConfig
from goodbot.features.reports import plugin
from goodbot.features.reward_model import plugin as reward_model_plugin
from goodbot.learning import reward_model

from tests.connectors.web.browsing import NARROW, person, press
from tests.connectors.web.test_ratings import wire
from tests.connectors.web.test_whole import link
from tests.core.builders import Bot, open_bot, rows, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/api/report"
SAID = "and so on and so forth " * 12


@contextlib.asynccontextmanager
async def goodbot(home: Path, port: int, *more: object, **changes: Any) -> AsyncIterator[Bot]:
    sections: dict[str, Any] = {"http": HttpConfig(port=port), "connectors": {"web": {}}, **changes}
    extra = (goodbot_connectors.web, plugin, *more)
    async with open_bot(home, extra=extra, sections=sections, terminal=True) as bot:
        yield bot


async def taught(bot: Bot) -> None:
    """A version, and two answers that repeat themselves."""
    await bot.rated(8)
    await bot.train()
    await bot.command("enable", channel="#team")  # whoever signs in sees nothing that others said in private
    for _ in range(2):
        await bot.react(await bot.say(SAID, channel="#team"), "👍")


async def report(bot: Bot, port: int) -> str:
    """What an owner gets of it, over the wire, when it is made."""
    status, _ = await wire(bot, port, "owner", path=PATH, body={"do": "make"})
    assert status == 200
    found = ""

    async def made() -> bool:
        nonlocal found
        _, found = await wire(bot, port, "owner", path=PATH)
        return re.search(r'"making": ?false', found) is not None

    await until(made)
    return found


async def test_owners_get_it_over_the_wire_and_nobody_else_a_letter(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        await taught(bot)
        found = await report(bot, unused_tcp_port)
        for told in ("Who taught what", "loopback:owner", "repeats"):
            assert told in found
        assert SAID not in found, "no text of anybody's"
        for user in ("rater", "talker"):
            for body in (None, {"do": "make"}):
                status, found = await wire(bot, unused_tcp_port, user, path=PATH, body=body)
                assert status == 400
                for kept in ("taught", "loopback:owner", "repeats", "share", "parts"):
                    assert kept not in found, kept
        status, _ = await wire(bot, unused_tcp_port, "owner", path=PATH, body={"do": "burn"})
        assert status == 400


async def test_an_owner_leaves_out_what_repeats_itself_and_trains_again_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium) as owner:
        await taught(bot)
        await owner.sign_in(await link(bot))
        await press(owner, "More")
        await press(owner, "Report")
        await owner.sees("100% of what it learnt")
        await owner.sees("Repeats itself: 2 answers.")
        await owner.page.locator("#drift svg").wait_for()
        await press(owner, "Each version")
        await owner.page.get_by_role("region", name="Each version").get_by_text("v1 (answers)").wait_for()
        await press(owner, "Leave all 2 out")
        await owner.sees("Leave 2 answers out?")
        await press(owner, "Leave out")
        await owner.sees("2 ratings of 2 answers left out.")
        assert len(await rows(bot.store, "SELECT 1 FROM quarantines WHERE turn IS NOT NULL")) == 2
        await press(owner, "Count them again")
        await owner.sees("2 ratings of 2 answers count again.")
        await press(owner, "Leave them out")
        await owner.sees("2 ratings of 2 answers left out.")
        await press(owner, "Train again")
        await owner.page.locator(".flag .told .words").wait_for()
        await press(owner, "Make it anew")
        await owner.sees("Nothing looks wrong")
        assert not await owner.scrolls_sideways()


async def test_an_owner_asks_the_version_fixed_questions(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as owner:
        own = '[[question]]\nask = "Which port?"\nright = "port"\n'
        (bot.app.config.home / "questions.toml").write_text(own, encoding="utf-8")
        await owner.sign_in(await link(bot))
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/report")
        await owner.sees("No version has been asked yet.")
        await owner.page.locator("#ask").press("Enter")
        await owner.sees("base has 1 of 1 own question right.")
        await press(owner, "What base says, the least alike first")
        await owner.page.locator(".pair dd").first.wait_for()
        assert not await owner.scrolls_sideways()


async def test_an_owner_sees_which_ratings_the_reward_model_doubts(
    chromium: Any, tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reward_model, "LEAST", 4)
    on: dict[str, Any] = {"features": {"reward_model": {}}}
    async with (
        goodbot(tmp_path, unused_tcp_port, reward_model_plugin, **on) as bot,
        person(chromium, viewport=NARROW) as owner,
    ):
        await bot.command("enable", channel="#team")
        await bot.rated(6, channel="#team")
        await bot.say("And another?", channel="#team")
        assert await reward_model.predict(bot.app) == ""
        await owner.sign_in(await link(bot))
        await owner.page.goto(f"http://127.0.0.1:{unused_tcp_port}/report")
        await owner.sees("a good one is ranked before a bad one in 80% of pairs")
        await owner.sees("rated good 50% (19% to 81%) of 6")
        await owner.sees("Rated otherwise than predicted: 3 answers.")
        await press(owner, "Leave all 3 out")
        await press(owner, "Leave out")
        await owner.sees("3 ratings of 3 answers left out.")
        await press(owner, "Make a queue of the one that it is least sure of")
        await until(lambda: rows(bot.store, "SELECT 1 FROM queue_answers"))
        assert not await owner.scrolls_sideways()


async def test_an_owner_reads_it_by_touch_on_a_phone(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        goodbot(tmp_path, unused_tcp_port) as bot,
        person(chromium, viewport=NARROW, has_touch=True) as owner,
    ):
        await taught(bot)
        await bot.react(await bot.say("And another?", channel="#team"), "👍")
        await owner.sign_in(await link(bot))
        await owner.go_to("Report")
        await owner.sees("Repeats itself: 2 answers.")
        await owner.page.get_by_role("link", name="Look at them").tap()
        await owner.sees("Of 2 that the report names")
        await owner.sees("2 answers")
        assert await owner.page.locator("#list .line.question").count() == 2
        await owner.page.get_by_role("button", name="Show all").tap()
        await owner.sees("3 answers")
        await owner.page.go_back()
        await owner.sees("Repeats itself: 2 answers.")
        await owner.page.get_by_text("Each version", exact=True).tap()
        await owner.page.get_by_role("button", name="Leave all 2 out").tap()
        await owner.page.get_by_role("button", name="No", exact=True).tap()
        assert not await owner.page.get_by_text("Leave 2 answers out?").is_visible()
        assert not await owner.scrolls_sideways()


async def test_a_rater_is_told_that_it_is_for_owners(
    chromium: Any, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=NARROW) as rater:
        await taught(bot)
        found = re.search(r"http://\S+", await bot.command("web", user="rater"))
        assert found is not None
        await rater.sign_in(found[0])
        await rater.page.goto(f"http://127.0.0.1:{unused_tcp_port}/report")
        await rater.sees("Owners of this bot see here who taught it what.")
        assert await rater.page.locator("#parts > *").count() == 0
        assert await rater.page.locator("#again").is_hidden()
