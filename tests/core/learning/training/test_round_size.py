# SPDX-License-Identifier: Apache-2.0
"""How many ratings a round waits for: the first one for fewer, with `start_small` and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.learning.training.round_size import first_round

from tests.core.builders import Bot, until
from tests.core.test_notes import noting

SMALL: dict[str, Any] = {"min_ratings": 40, "held_out": 8, "schedule": "auto", "start_small": True}


@pytest.mark.parametrize(
    ("worded", "usual", "wanted"),
    [(0, 40, 24), (6, 40, 18), (12, 40, 12), (30, 40, 12), (0, 8, 8), (12, 8, 8)],
)
def test_one_rating_with_words_is_worth_two_without(worded: int, usual: int, wanted: int) -> None:
    assert first_round(worded, usual) == wanted


async def rate(bot: Bot, count: int, *, words: bool = False) -> str:
    """So many bad answers; what the last rater was told."""
    said = ""
    for number in range(count):
        answer = await bot.say(f"question {number}")
        said = await bot.command("bad", answer.turn)
        if words:
            await bot.chat.comment(answer, f"too long {number}")
    return said


async def counted(bot: Bot) -> tuple[int, int, str]:
    """By `status`, and what the scheduler waits for."""
    status = await bot.status()
    return status["ratings"], status["needed"], status["next"]


async def test_by_default_it_waits_for_forty(tmp_path: Path) -> None:
    async with noting(tmp_path, **{**SMALL, "start_small": False}) as bot:
        assert "3 of 40 ratings (37 to go)." in await rate(bot, 3, words=True)
        assert (await counted(bot))[1] == 40


async def test_the_first_round_waits_for_24_and_with_words_for_12(tmp_path: Path) -> None:
    """The rater, `status` and the scheduler count the same."""
    async with noting(tmp_path, **{**SMALL, "quiet_hours": "00:00-23:59"}) as bot:
        assert "2 of 24 ratings (22 to go)." in await rate(bot, 2)
        assert await counted(bot) == (2, 24, "2 of 24 ratings, 22 more until the next training")
        assert "3 of 24 ratings (21 to go)." in await rate(bot, 1, words=True)
        assert await counted(bot) == (3, 23, "3 of 23 ratings, 20 more until the next training")
        assert "12 of 15 ratings (3 to go)." in await rate(bot, 9, words=True)
        await rate(bot, 1, words=True)
        ratings, needed, why = await counted(bot)
        assert (ratings, needed) == (13, 13)
        assert "until the next training" not in why


async def test_it_starts_by_itself_then_and_the_next_waits_for_forty(tmp_path: Path) -> None:
    async with noting(tmp_path, **SMALL) as bot:
        await rate(bot, 12, words=True)

        async def live() -> bool:
            return await bot.app.registry.active() == 1

        await until(live)
        told = await rate(bot, 1, words=True)
        assert "3 of 40 ratings (37 to go)." in told, "beside the two that were held out"


async def test_where_no_notes_are_kept_it_waits_for_forty(tmp_path: Path) -> None:
    async with noting(tmp_path, where="never", **SMALL) as bot:
        assert "1 of 40 ratings (39 to go)." in await rate(bot, 1, words=True)
