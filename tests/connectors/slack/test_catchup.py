# SPDX-License-Identifier: Apache-2.0
"""What was written while nobody listened: from when on it is read, and how much of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
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


def catch_up(host: RecordingHost, told: list[str]) -> CatchUp:
    threads = Threads()
    threads.note("C1", "1.0", "1.1", answer=True)

    async def submit(body: Any) -> None:
        told.append(body["event"]["ts"])

    return CatchUp(host, threads, submit)


async def test_it_reads_from_before_a_silent_network_was_noticed(host: RecordingHost) -> None:
    assert transport.SILENT == 4 * transport._PING + transport._LOOK  # type: ignore[attr-defined]
    reading, pages = catch_up(host, []), Pages()
    await reading.alive()
    now = host.clock.now()
    reading.begin(cast("Api", pages))
    await until(lambda: len(pages.asked) == 2)
    assert all(since <= now - transport.SILENT - 10 for _, since in pages.asked)


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
