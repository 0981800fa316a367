# SPDX-License-Identifier: Apache-2.0
"""What axe-core finds wrong with the pages for who does not see them, or not well: nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from goodbot.api.learnt import AnsweredTwice
from goodbot.api.overview import LearntCard, TrainingNow, VersionRatings

from tests.connectors.web.browsing import DESK, Person, person
from tests.connectors.web.scripted import Scripted, waiting
from tests.node import install
from tests.support import missing

pytestmark = pytest.mark.asyncio(loop_scope="module")

NARROW = {"width": 390, "height": 844}
LEARNT = LearntCard(
    version=1,
    told="My answers have changed.",
    pairs=(AnsweredTwice(prompt="Why?", before="Because it is so.", after="So."),),
)
RATED = [
    VersionRatings(version=n, made_at=1.8e9, active=n == 1, good=4, rated=8, share=0.5, low=0.2, high=0.8)
    for n in range(2)
]
FOUND = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
  (one) => [one.id, one.impact, one.nodes.map((node) => node.target.join(" "))])"""
"""Rule, how bad, and which elements."""


@pytest.fixture(scope="module")
def axe() -> str:
    """Its program."""
    if why := install.absent():
        missing(why)
    return (install.HERE / "node_modules/axe-core/axe.min.js").read_text("utf-8")


async def violations(somebody: Person, axe: str) -> Any:
    await somebody.page.evaluate(axe)
    return await somebody.page.evaluate(FOUND)


@pytest.mark.parametrize("viewport", [DESK, NARROW], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_stands_in_anybody_s_way(
    chromium: Any, bot: Scripted, axe: str, viewport: Any, scheme: Any
) -> None:
    bot.waiting.append(waiting("t1", "Question?", "Answer."))
    now = TrainingNow(doing="learning", step=1, steps=2, left="2 min left")
    bot.seen = replace(bot.seen, training=now, begun=True, lesson=LEARNT, versions=RATED)
    async with person(chromium, viewport=viewport, color_scheme=scheme) as ada:
        await ada.open(f"{bot.address}/login")
        await ada.page.locator("main").wait_for()
        assert await violations(ada, axe) == [], "signed out"
        await ada.come_back(bot, "ada")
        assert await violations(ada, axe) == [], "nothing said yet"
        answer = await ada.ask("hello **bold** `code`")
        await answer.get_by_role("button", name="Bad").click()
        await answer.get_by_role("button", name="Tone").wait_for()
        assert await violations(ada, axe) == [], "an answer that was bad"
        await answer.get_by_role("button", name="Say why").click()
        assert await violations(ada, axe) == [], "a form under it"
        field = ada.page.get_by_label("Message", exact=True)
        await field.fill("/r")
        await ada.page.get_by_role("option").first.wait_for()
        await field.press("ArrowDown")
        assert await violations(ada, axe) == [], "commands"
        await field.fill("")
        await ada.key("?")
        await ada.page.get_by_role("dialog").wait_for()
        assert await violations(ada, axe) == [], "the keys"
        for path, shown in (("/rate", ".card"), ("/progress", ".chart"), ("/notes", "main")):
            await ada.page.goto(bot.address + path)
            await ada.page.locator(shown).first.wait_for()
            assert await violations(ada, axe) == [], path
