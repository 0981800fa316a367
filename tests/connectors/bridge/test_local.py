# SPDX-License-Identifier: Apache-2.0
"""A connector whose far side calls: commands that are waited for, news that are fetched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CommandEvent, Event, Outcome, Receipt, Reply
from goodbot.base.errors import RetriableError, StoreError
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.bridge.local import LocalConnector

from tests.connectors.bridge.serving import SPEC, Echo, Settings
from tests.core.builders import until


class Core(RecordingHost):
    """Answers a command once `go` is set, as the dispatcher would."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(SPEC, state_dir=state_dir)
        self.go = asyncio.Event()
        self.go.set()
        self.connector: LocalConnector | None = None
        self.answer = lambda event: Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED)

    async def submit(self, events: Any, *, cursor: str | None = None) -> tuple[Receipt, ...]:
        receipts = await super().submit(events, cursor=cursor)
        for event, receipt in zip(events, receipts, strict=True):
            if not receipt.duplicate:
                self.spawn(self._do(event), "do")
        return receipts

    async def _do(self, event: Event) -> None:
        await self.go.wait()
        assert isinstance(event, CommandEvent)
        done = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, text=f"Did {event.name}.")
        self._receipts[event.event_id] = done
        assert self.connector is not None
        await self.connector.acknowledge(event, done)


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    core = Core(tmp_path)
    yield core
    await core.close()
    assert core.failures == []


async def begin(core: Core) -> Echo:
    core.connector = connector = Echo(core, Settings())
    await connector.start()
    return connector


async def do(connector: LocalConnector, name: str, event_id: str = "one", seconds: float = 20.0) -> Receipt:
    me, here = connector.user("me"), connector.channel("me")
    return await connector.command(me, here, name, "", event_id=event_id, seconds=seconds)


async def test_a_command_returns_what_it_came_to(core: Core) -> None:
    connector = await begin(core)
    assert (await do(connector, "status")).text == "Did status."
    [event] = await core.received(CommandEvent)
    assert (event.user.id, event.user.account, event.channel.id) == ("me", "local", "me")


async def test_asked_again_it_is_not_done_again(core: Core) -> None:
    connector = await begin(core)
    core.go.clear()
    both = asyncio.gather(do(connector, "train"), do(connector, "train"))
    await core.wait(lambda: len(core.attempts) == 2)
    core.go.set()
    assert [one.text for one in await both] == ["Did train.", "Did train."]
    assert (await do(connector, "train")).text == "Did train."
    assert len(core.events) == 1


async def test_what_is_refused_at_once_is_not_waited_for(core: Core) -> None:
    connector = await begin(core)
    core.answer = lambda event: Receipt(event_id=event.event_id, outcome=Outcome.DENIED, text="You may not.")
    core.go.clear()
    assert (await do(connector, "train")).text == "You may not."


async def test_what_takes_too_long_is_told_later(core: Core) -> None:
    connector = await begin(core)
    core.go.clear()
    assert "takes longer" in (await do(connector, "train", seconds=0.05)).text
    core.go.set()
    await until(lambda: "Did train." in (core._values.get("news") or ""), 20)
    assert connector.news("me") == ["Did train."]
    assert connector.news("me") == []


async def test_who_waits_is_told_of_a_stop_and_nothing_is_taken_after(core: Core) -> None:
    connector = await begin(core)
    core.go.clear()
    waiting = asyncio.create_task(do(connector, "train"))
    await core.wait(lambda: bool(core.commits))
    await connector.stop()
    await connector.stop()
    told = await waiting  # no error: it is stored, and must not be sent a second time
    assert (told.event_id, told.outcome) == ("one", Outcome.ACCEPTED)
    assert "`status` tells later" in told.text
    with pytest.raises(RetriableError, match="stopping"):
        await do(connector, "train", "two")
    assert len(core.attempts) == 1


async def test_a_store_that_refuses_is_said(core: Core) -> None:
    connector = await begin(core)
    core.refuse()
    with pytest.raises(StoreError):
        await do(connector, "train")
    assert (await do(connector, "train")).text == "Did train."


async def test_news_wait_for_whoever_they_are_for_even_through_a_restart(core: Core) -> None:
    connector = await begin(core)
    for user, text in (("me", "v3 is live"), ("ci", "hello"), ("me", "v4 is live")):
        channel = await connector.private(user)
        assert channel is not None
        await connector.send(channel, Reply(text=text, silent=True))
    await connector.stop()
    connector = await begin(core)
    assert connector.news("me") == ["v3 is live", "v4 is live"]
    assert connector.news("nobody") == []
    await until(lambda: "v3" not in (core._values.get("news") or ""), 20)
    connector = await begin(core)
    assert connector.news("me") == []
    assert connector.news("ci") == ["hello"]


async def test_news_are_bounded_and_forgotten(core: Core) -> None:
    connector = await begin(core)
    here = connector.channel("me")
    for number in range(25):
        await connector.send(here, Reply(text=f"{number} " + "x" * 5000))
    kept = json.loads(core._values["news"])["me"]
    assert [(len(text), text.split()[0]) for text in kept] == [(2000, str(n)) for n in range(5, 25)]
    await connector.forget("me")
    await connector.forget("me")
    assert connector.news("me") == []
    assert core._values == {}


async def test_events_come_in_order_whatever_the_clock_does(core: Core) -> None:
    connector = await begin(core)
    keys = [connector.order() for _ in range(1000)]
    assert keys == sorted(set(keys))
