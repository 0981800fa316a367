# SPDX-License-Identifier: Apache-2.0
"""What pages hear, and what they are told after they were away."""

from __future__ import annotations

import json
from typing import Any

from goodbot_connectors.web.live import Live, Page


def heard(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not page._queue.empty():
        if (frame := page._queue.get_nowait()) is not None:
            found.append(json.loads(frame))
    return found


def test_a_page_that_was_away_gets_what_it_missed() -> None:
    live = Live()
    page = live.attach("ada", "s")
    [stale] = heard(page)
    assert stale["stale"] is True, "who has seen nothing reads the state"
    live.tell("ada", {"x": 1})
    [first] = heard(page)
    live.detach("ada", page)
    live.tell("ada", {"x": 2})
    live.tell("ada", {"x": 3})
    again = live.attach("ada", "s", after=first["n"])
    assert [frame["x"] for frame in heard(again)] == [2, 3]
    assert heard(live.attach("ada", "s", after=live.last("ada"))) == []


def test_what_nobody_remembers_is_stale() -> None:
    live, other = Live(), Live()
    for number in range(2500):
        live.tell("ada", {"x": number})
    other.tell("ada", {})
    for after in (
        "",
        "x",
        "-",
        other.last("ada"),
        f"{live.last('ada')}0",
        live.last("ada")[:9] + "1",
        f"{live.last('ada').split('-')[0]}-{'9' * 40}",
    ):
        frames = heard(live.attach("ada", "s", after))
        assert [frame.get("stale") for frame in frames] == [True], after


def test_nobody_hears_another_s() -> None:
    live = Live()
    ada, bob = live.attach("ada", "1"), live.attach("bob", "2")
    heard(ada), heard(bob)
    live.tell("ada", {"x": 1})
    assert (len(heard(ada)), len(heard(bob))) == (1, 0)
    assert heard(live.attach("bob", "2", after=live.last("ada")))[0]["stale"] is True


async def test_a_page_that_hangs_holds_up_nobody() -> None:
    live = Live()
    hung, well = live.attach("ada", "1"), live.attach("ada", "2")
    for number in range(6000):
        live.tell("ada", {"x": number})
        well._queue.get_nowait()
    assert [frame async for frame in hung] == [], "it is let go, and reads anew"


async def test_long_frames_are_no_way_to_fill_the_memory() -> None:
    live, long = Live(), "x" * 100_000
    hung = live.attach("ada", "1")
    for _ in range(100):
        live.tell("ada", {"x": long})
    assert sum(len(text) for _, text in live._frames["ada"]) <= 1_000_000
    assert [frame async for frame in hung] == [], "it is let go, and reads anew"
    back = live.attach("ada", "1", after=live.last("ada"))
    live.tell("ada", {"x": 1})
    assert [frame["x"] for frame in heard(back)] == [1]


async def test_a_session_that_ends_takes_its_pages_along() -> None:
    live = Live()
    mine, other, bob = live.attach("ada", "1"), live.attach("ada", "2"), live.attach("bob", "3")
    heard(other), heard(bob)
    live.close(session="1")
    assert [frame async for frame in mine] == []
    live.tell("ada", {})
    live.tell("bob", {})
    assert (len(heard(other)), len(heard(bob))) == (1, 1)
