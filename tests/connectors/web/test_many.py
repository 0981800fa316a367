# SPDX-License-Identifier: Apache-2.0
"""The owners' pages over thirty days and 100,000 rated answers: right, bounded, and nobody else's."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from aiohttp.web import RouteDef
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, UserRef
from goodbot.commands import report
from goodbot.store import ledger, settings, turns
from goodbot_connectors.web.connector import WebConnector

from tests.connectors.web.browsing import DESK, NARROW, Person, focus, person, press, types
from tests.connectors.web.test_report import goodbot
from tests.connectors.web.test_whole import link
from tests.core.builders import Bot, copied, rows
from tests.core.made import rate, turn
from tests.support import free_port

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ANSWERS, TALKERS, DAYS, ACTS = 100_000, 61, 30, 120
RECENT = 5000
"""Rated answers of which the shares of versions are told: the newest."""
REPORTED = 6000
"""Answers that a report looks at here: all of them take it half a minute."""
LARGEST = 100_000
"""Bytes of one answer of the server's, less than one an answer."""
PAGES = ("progress", "versions", "ratings", "people", "activity", "report")


def version(number: int) -> int:
    return number % 3


def is_bad(number: int) -> bool:
    """Of none of the base model's, of a fifth of v1's, of two fifths of v2's."""
    return number % 5 < number % 3


def liked(of: int) -> tuple[int, int]:
    """Of the newest answers of a version how many are good, and how many there are."""
    newest = [n for n in range(ANSWERS - RECENT + 1, ANSWERS + 1) if version(n) == of]
    return sum(not is_bad(n) for n in newest), len(newest)


async def plant(bot: Bot) -> None:
    """Private answers to people who share theirs: owners see them, and nobody else does."""
    now = time.time()
    channel = ChannelRef(connector="loopback", account="loopback", id="t0", kind=ChannelKind.PRIVATE)
    talker = UserRef(connector="loopback", account="loopback", id="t0")
    messages = [{"role": "user", "content": "Where does a maple grow?"}]
    like = turn(
        "like", channel=channel, talker=talker, messages=messages, response="Here.", model=bot.app.model.name
    )
    event = rate("like", 0, 1.0, turn="like", user=talker, channel=channel, message_id="", source="planted")
    receipt = event.receipt(Outcome.ACCEPTED, turn="like")
    await bot.store.write(lambda db: turns.insert(db, like, trainable=True))
    await bot.store.write(lambda db: ledger.insert(db, event, "like", "loopback:t0", receipt, now))
    who = f"'t' || (i % {TALKERS})"
    await copied(
        bot.store,
        "like",
        1,
        ANSWERS,
        said={"rater": f"'loopback:' || {who}", "value": "CASE WHEN i % 5 < i % 3 THEN -1.0 ELSE 1.0 END"},
        created_at=f"{now} - ({ANSWERS} - i) * {86_400.0 * DAYS / ANSWERS}",
        response="'Maple ' || i || ' grows there.'",
        talker=who,
        channel=who,
        version="i % 3",
    )

    async def more(db: Any) -> None:
        await db.execute(
            "INSERT INTO shares SELECT person, ? FROM talkers WHERE person GLOB 'loopback:t[0-9]*'", (now,)
        )
        for number in range(ACTS):
            at = now - 86_400.0 * DAYS * (1 - number / ACTS)
            await settings.record(db, "loopback:owner", "pause", {"args": "", "channel": "private"}, at)

    await bot.store.write(more)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bot]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "MOST", REPORTED)
        async with goodbot(tmp_path_factory.mktemp("many"), free_port()) as bot:
            for _ in range(2):
                await bot.rated(8)
                await bot.train()
            await plant(bot)
            yield bot


def listen(somebody: Person) -> list[tuple[str, int]]:
    """Paths of what the pages ask for from now on, each with the bytes of its answer."""
    heard: list[tuple[str, int]] = []

    def hear(response: Any) -> None:
        path = urlsplit(response.url).path
        if path.startswith("/api/") and path != "/api/live" and response.request.method == "GET":
            heard.append((path, int(response.headers.get("content-length", 0))))

    somebody.context.on("response", hear)
    return heard


async def count_is(somebody: Person, pattern: str) -> None:
    await somebody.page.locator("#count", has_text=re.compile(pattern)).wait_for()


async def further(somebody: Person) -> None:
    """The next page of a list, by the keyboard."""
    await focus(somebody, "#more", most=200)
    await somebody.page.keyboard.press("Enter")


async def progress(owner: Person, bot: Bot) -> None:
    have = (await bot.app.scheduler.standing()).available
    assert have > ANSWERS
    ring = f"{have:,} of {await bot.app.scheduler.needed()} ratings"
    await owner.page.get_by_role("img", name=ring).wait_for()
    await owner.page.get_by_role("img", name="base 100%, v1 80%, v2 60%").wait_for()
    await press(owner, "As a table")
    good, rated = liked(2)
    await owner.sees(f"60%, {good:,} of {rated:,}")


async def versions(owner: Person, bot: Bot) -> None:
    await owner.sees("v2 answers now.")
    for number, share in ((2, "60%"), (1, "80%")):
        _, rated = liked(number)
        head = owner.page.locator(f"#version-{number} .head", has_text=f"of {rated:,} rated")
        assert share in await head.inner_text()


async def ratings(owner: Person, bot: Bot) -> None:
    answers = owner.page.locator("#list .line:not(.question)")
    await count_is(owner, "^30 or more answers$")
    await further(owner)
    await count_is(owner, "^60 or more answers$")
    shown = await answers.all_inner_texts()
    assert shown == [f"Maple {ANSWERS - n} grows there." for n in range(60)]
    await types(owner, "#text", f"maple {ANSWERS - 10}")
    await count_is(owner, "^1 ")  # after it has looked through all of them
    assert await answers.all_inner_texts() == [f"Maple {ANSWERS - 10} grows there."]


async def people(owner: Person, bot: Bot) -> None:
    shown = owner.page.locator("#list > li")
    known = await rows(bot.store, "SELECT count(DISTINCT person) FROM talkers")
    await count_is(owner, r"^\d+ people$")
    assert int((await owner.page.locator("#count").inner_text()).split()[0]) >= known[0][0] > TALKERS
    assert await shown.count() == 50
    await further(owner)
    await owner.page.locator("#more").wait_for(state="hidden")
    assert await shown.count() > TALKERS
    line = shown.filter(has=owner.page.get_by_text("loopback:t7", exact=True))
    theirs = sum(n % TALKERS == 7 for n in range(1, ANSWERS + 1))
    assert f"{theirs:,} ratings" in await line.inner_text()


async def activity(owner: Person, bot: Bot) -> None:
    await count_is(owner, "^50 or more entries$")
    [(entries,)] = await rows(bot.store, "SELECT count(*) FROM audit")
    assert entries > ACTS
    await owner.sees(f"Checked: {entries} entries, none changed.")
    await further(owner)
    await count_is(owner, "^100 or more entries$")


async def reported(owner: Person, bot: Bot) -> None:
    await owner.page.locator("#state", has_text="Made ").wait_for()
    await press(owner, "Each version")
    table = owner.page.get_by_role("region", name="Each version")
    for name, share in (("v2", "60%"), ("v1", "80%"), ("base", "100%")):
        line = table.locator("tbody tr", has=owner.page.locator(f"th:has-text('{name}')"))
        told = await line.inner_text()
        assert share in told
        assert f"{REPORTED // 3:,}" in told, "so many of its answers were looked at"


LOOKS = dict(zip(PAGES, (progress, versions, ratings, people, activity, reported), strict=True))


@pytest.mark.parametrize(
    ("viewport", "pages"), [(NARROW, PAGES), (DESK, ("ratings", "people"))], ids=["phone", "desk"]
)
async def test_an_owner_gets_all_of_it_a_page_at_a_time(
    chromium: Any, bot: Bot, viewport: Any, pages: Sequence[str]
) -> None:
    async with person(chromium, viewport=viewport) as owner:
        heard = listen(owner)
        url = await link(bot)
        await owner.sign_in(url)
        address = url.partition("/login")[0]
        for name in pages:
            await owner.page.goto(f"{address}/{name}")
            await LOOKS[name](owner, bot)
            assert not await owner.scrolls_sideways(), name
        assert {f"/api/{name}" for name in pages} <= {path for path, _ in heard}
        assert [one for one in heard if not 0 < one[1] < LARGEST] == []


async def test_a_rater_gets_nothing_of_it(chromium: Any, bot: Bot) -> None:
    web = bot.app.connectors.running["web"]
    assert isinstance(web, WebConnector)
    asked = [
        one.path
        for one in web.routes()
        if isinstance(one, RouteDef) and one.method == "GET" and one.path.startswith("/api/")
    ]
    assert len(asked) > 10
    found = re.search(r"http://\S+", await bot.command("web", user="rater"))
    assert found is not None
    async with person(chromium) as rater:
        await rater.sign_in(found[0])
        get = "(path) => fetch(path).then((response) => response.text())"
        for path in asked:
            if path != "/api/live":
                told = (await rater.page.evaluate(get, path)).casefold()
                for kept in ("maple", "loopback:t", '"versions": [{'):
                    assert kept not in told, (path, kept)
