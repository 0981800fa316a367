# SPDX-License-Identifier: Apache-2.0
"""An answer that comes to no end is cut off, however it goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.clock import SystemClock

from tests.core.builders import Bot, open_bot, rows


class Fast(SystemClock):
    """A minute passes with each look at it."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        self.passed += 60.0
        return super().monotonic() + self.passed


class Endless:
    """A server that says `piece` again and again."""

    def __init__(self, bot: Bot, piece: str) -> None:
        self.pieces, self.closed = 0, False
        self._piece = piece
        bot.app.server.generate = self._generate  # type: ignore[method-assign]

    async def _generate(self, _: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        try:
            while self.pieces < 5000:
                self.pieces += 1
                yield self._piece
        finally:
            self.closed = True


async def failed(bot: Bot) -> Any:
    answer = await bot.say("Who?")
    assert not answer.turn
    return await rows(bot.store, "SELECT 1 FROM turns")


@pytest.mark.parametrize("piece", ["x" * 1_000_000, "word " * 10])
async def test_too_much_text_is_cut_off(tmp_path: Path, piece: str) -> None:
    async with open_bot(tmp_path) as bot:
        endless = Endless(bot, piece)
        assert await failed(bot) == []
        assert endless.closed
        assert endless.pieces * len(piece) <= 2_000_000


async def test_too_much_time_is_cut_off(tmp_path: Path) -> None:
    async with open_bot(tmp_path, clock=Fast()) as bot:
        endless = Endless(bot, "")
        assert await failed(bot) == []
        assert endless.closed
        assert endless.pieces < 5000


async def test_a_whole_answer_that_is_too_long_is_refused_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:

        async def at_once(_: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
            yield Generated(text="x" * 1_000_000, version=0, finish="stop")

        bot.app.server.generate = at_once  # type: ignore[method-assign]
        assert await failed(bot) == []
