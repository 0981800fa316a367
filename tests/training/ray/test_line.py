# SPDX-License-Identifier: Apache-2.0
"""The line of orders: what a lost worker does again, and which machines are told anything."""

from __future__ import annotations

import asyncio

import pytest
from goodbot.base.errors import TrainingError
from goodbot_training.backends.ray.line import END, STATE, OrderLine, refuse_others


async def test_a_worker_begins_behind_the_last_checkpoint() -> None:
    line = OrderLine(b"first", [])
    assert await line.begin("127.0.0.2") == (0, b"first")
    for number in range(3):
        assert await line.give({"what": "step", "batch": number}) == number
        await line.done(number, {"done": {"loss": number}}, b"")
    assert await line.begin("127.0.0.3") == (0, b"first")
    assert await line.give({"what": STATE}) == 3
    await line.done(3, {"done": {}}, b"third")
    assert await line.result(3) == ({"done": {}}, b"third")
    assert await line.begin("127.0.0.2") == (4, b"third")
    waiting = asyncio.create_task(line.order(4))
    assert await line.give({"what": "step", "batch": 4}) == 4
    assert (await waiting)["batch"] == 4
    assert line.begun == 3
    assert (await line.order(3))["what"] == STATE, "one who is behind finds it yet"


async def test_what_is_done_again_changes_nothing_that_was_told() -> None:
    line = OrderLine(b"", [])
    number = await line.give({"what": "step"})
    await line.done(number, {"done": {"loss": 1.0}}, b"")
    await line.done(number, {"done": {"loss": 2.0}}, b"")
    assert (await line.result(number))[0] == {"done": {"loss": 1.0}}


async def test_nothing_is_told_to_a_machine_that_nobody_has_named() -> None:
    line = OrderLine(b"state", ["10.0.0.5"])
    assert await line.begin("10.0.0.5") == (0, b"state")
    with pytest.raises(TrainingError, match=r"has the machine 10\.0\.0\.6, and nobody has allowed"):
        await line.begin("10.0.0.6")
    refuse_others(["127.0.0.2", "::1", "10.0.0.5"], ["10.0.0.5"])
    with pytest.raises(TrainingError, match="add it to hosts"):
        refuse_others(["127.0.0.2", "10.0.0.5"], [])


async def test_who_begins_when_all_is_at_its_end_does_nothing_again() -> None:
    line = OrderLine(b"state", [])
    await line.give({"what": "step"})
    assert await line.give({"what": END}) == 1
    at, _ = await line.begin("127.0.0.2")
    assert (await line.order(at))["what"] == END
