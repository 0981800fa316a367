# SPDX-License-Identifier: Apache-2.0
"""What was written while nobody listened: from when on it is read, and how much of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.slack import SPEC, catchup, transport
from goodbot_connectors.slack.api import Api
from goodbot_connectors.slack.catchup import CatchUp
from goodbot_connectors.slack.threads import Threads

from tests.core.builders import until


class Pages:
    """Conversations of so many messages, newest first, a page at a time; `go` lets it answer."""

    def __init__(self, count: int = 0) -> None:
        self.times = [f"{2e9 + n:.6f}" for n in reversed(range(count))]
        self.asked: list[tuple[str, float]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append((method, float(arguments["oldest"])))
        await self.go.wait()
        start, limit = int(arguments.get("cursor", 0)), arguments["limit"]
        found = self.times[start : start + limit] if method == "conversations.history" else []
        more = start + limit < len(self.times)
        return {
            "messages": [{"ts": ts} for ts in found],
            "response_metadata": {"next_cursor": str(start + limit) if found and more else ""},
        }


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[RecordingHost]:
    host = RecordingHost(SPEC, state_dir=tmp_path, clock=VirtualClock(waits=True))
    yield host
    await host.close()
    assert host.failures == []


def catch_up(host: RecordingHost, told: list[str], dates: Dates | None = None) -> CatchUp:
    threads = Threads()
    threads.note("C1", "1.0", "1.1", answer=True)

    async def submit(body: Any) -> None:
        told.append(body["event"]["ts"])

    return CatchUp(host, threads, submit, (dates or Dates(host.clock)).now)


async def test_it_reads_from_before_a_silent_network_was_noticed(host: RecordingHost) -> None:
    assert transport.SILENT == 4 * transport._PING + transport._LOOK  # type: ignore[attr-defined]
    reading, pages = catch_up(host, []), Pages()
    await reading.alive()
    now = host.clock.now()
    reading.begin(cast("Api", pages))
    await until(lambda: len(pages.asked) == 2)
    assert all(since <= now - transport.SILENT - 10 for _, since in pages.asked)


@pytest.mark.parametrize(
    ("ahead", "jump"), [(0.0, 0.0), (600.0, 0.0), (-600.0, 0.0), (3600.0, -3600.0), (0.0, 3600.0)]
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_an_outage_is_measured_by_slacks_clock_whatever_ours_shows(
    host: RecordingHost, ahead: float, jump: float, restarted: bool
) -> None:
    """Ours is ahead or behind, and is set during the outage."""
    clock = cast("VirtualClock", host.clock)
    slacks, dates = clock.now(), Dates(clock)
    clock.jump(ahead)
    dates.take(formatdate(slacks, usegmt=True))
    reading, pages = catch_up(host, [], dates), Pages()
    await reading.alive()
    clock.jump(jump)
    clock.advance(300)
    if restarted:
        dates = Dates(clock)
        reading = catch_up(host, [], dates)
        await reading.load()
    dates.take(formatdate(slacks + 300, usegmt=True))
    reading.begin(cast("Api", pages))
    await until(lambda: len(pages.asked) == 2)
    assert {since for _, since in pages.asked} == {slacks - transport.SILENT - 15}


async def test_when_we_were_connected_is_kept_though_our_clock_was_set_back(host: RecordingHost) -> None:
    clock = cast("VirtualClock", host.clock)
    dates, began = Dates(clock), clock.now()
    dates.take(formatdate(began, usegmt=True))
    reading = catch_up(host, [], dates)
    await reading.alive()
    clock.jump(-3600)
    clock.advance(600)
    await reading.alive()
    assert await host.get(catchup.KEY) == f"{began + 600:.0f}"


async def test_a_moment_that_slack_has_not_reached_yet_says_nothing_of_the_outage(
    host: RecordingHost,
) -> None:
    """An older goodbot took it from our clock."""
    await host.set(catchup.KEY, f"{host.clock.now() + 3600:.0f}")
    reading, pages = catch_up(host, []), Pages()
    await reading.load()
    reading.begin(cast("Api", pages))
    await until(lambda: len(pages.asked) == 2)
    assert {since for _, since in pages.asked} == {host.clock.now() - 900}


async def test_it_reads_page_after_page_in_the_order_of_time(host: RecordingHost) -> None:
    told: list[str] = []
    reading, pages = catch_up(host, told), Pages(250)
    await reading.alive()
    reading.begin(cast("Api", pages))
    await until(lambda: len(told) == 250)
    assert told == pages.times[::-1]


async def test_an_outage_during_the_reading_starts_it_anew_from_where_it_was(host: RecordingHost) -> None:
    reading, pages = catch_up(host, []), Pages()
    await reading.alive()
    pages.go.clear()
    reading.begin(cast("Api", pages))
    await until(lambda: pages.asked)
    first = reading._reading  # type: ignore[attr-defined]
    cast("VirtualClock", host.clock).advance(60)
    await reading.alive()
    reading.begin(cast("Api", pages))
    await until(lambda: len(pages.asked) == 2)
    assert first is not None
    assert first.done()
    pages.go.set()
    await until(lambda: len(pages.asked) == 3)
    assert len({since for _, since in pages.asked}) == 1
    assert catchup.KEY == "connected_at"
