# SPDX-License-Identifier: Apache-2.0
"""Answers that nobody waits for never hold up one that somebody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.testing import VirtualClock

from tests.core.builders import open_bot, rows, until
from tests.core.learning.evaluation.asking import asked, current, open_asking

REQUEST = GenerateRequest(messages=[], max_tokens=4, temperature=1.0, seed=0)


class Slow:
    """A server whose answers end when they may."""

    def __init__(self) -> None:
        self.began = self.cut_off = self.writing = self.most = 0
        self.may_end = asyncio.Event()

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated]:
        self.began += 1
        self.writing += 1
        self.most = max(self.most, self.writing)
        try:
            yield "piece"
            await self.may_end.wait()
            yield Generated(text="done", version=0, finish="stop")
        except (asyncio.CancelledError, GeneratorExit):
            self.cut_off += 1
            raise
        finally:
            self.writing -= 1


def spare(server: Any, busy: list[bool]) -> SpareTime:
    return SpareTime(server=server, clock=VirtualClock(), busy=lambda: busy[0])


async def test_it_waits_while_somebody_waits_and_is_cut_off_when_somebody_comes() -> None:
    server, busy = Slow(), [True]
    answer = asyncio.create_task(spare(server, busy).answer(REQUEST))
    await asyncio.sleep(0.01)
    assert server.began == 0
    busy[0] = False
    await until(lambda: server.began == 1)
    busy[0] = True
    await until(lambda: server.cut_off == 1)
    assert server.writing == 0
    await asyncio.sleep(0.01)
    assert server.began == 1, "not while they wait"
    busy[0] = False
    server.may_end.set()
    assert (await answer).text == "done"
    assert server.began == 2


async def test_it_is_one_at_a_time() -> None:
    server, busy = Slow(), [False]
    server.may_end.set()
    time = spare(server, busy)
    await asyncio.gather(*(time.answer(REQUEST) for _ in range(5)))
    assert (server.began, server.most) == (5, 1)


async def test_who_gives_up_leaves_nothing_behind() -> None:
    server, busy = Slow(), [False]
    time = spare(server, busy)
    answer = asyncio.create_task(time.answer(REQUEST))
    await until(lambda: server.writing == 1)
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert (server.writing, server.cut_off) == (0, 1)
    server.may_end.set()
    assert (await time.answer(REQUEST)).text == "done"


async def test_half_an_answer_is_an_error() -> None:
    class Broken:
        async def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated]:
            yield "half"

    with pytest.raises(ServerError, match="half way"):
        await spare(Broken(), [False]).answer(REQUEST)


async def test_while_people_talk_no_answer_of_a_question_is_written(tmp_path: Path) -> None:
    async with open_asking(tmp_path) as bot:
        await bot.rated(8)
        spare, talks = bot.app.ab_test._preparing._spare, [True]
        await until(lambda: not spare._busy())
        spare._busy = lambda: talks[0]
        await bot.train()
        await until(lambda: current(bot))
        await asyncio.sleep(0.5)
        found = await current(bot)
        assert found is not None
        assert found.state == "preparing"
        assert await rows(bot.store, "SELECT * FROM pairs") == []
        talks[0] = False
        await asked(bot)


async def test_who_waits_for_an_answer_makes_it_busy(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        busy = bot.app.ab_test._preparing._spare._busy
        bot.fake.set(generate="slow")
        talking = asyncio.create_task(bot.say("a few words"))
        await until(busy)
        await talking
        await until(lambda: not busy())


async def test_versions_beside_are_loaded_once_and_unloaded_at_the_end(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for _ in range(2):
            await bot.rated(8)
            await bot.train()
        registry, server = bot.app.registry, bot.app.server
        loaded = server._loaded
        assert set(loaded) == {2}
        async with registry.beside(0, 1, 2):
            async with registry.beside(1):
                assert set(loaded) == {1, 2}
            assert set(loaded) == {1, 2}, "somebody uses it still"
            assert (await bot.say("undisturbed?")).text.startswith("v2 says")
            assert await registry.activate(1, expected=2)
            assert set(loaded) == {1, 2}, "it is used beside, though it answers no more"
        assert set(loaded) == {1}
        assert (await bot.say("and now?")).text.startswith("v1 says")
