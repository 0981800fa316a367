# SPDX-License-Identifier: Apache-2.0
"""What the gate keeps, over many rounds: each rating at most once, and it trains later all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.store import verdicts

from tests.core.builders import Bot, check, open_bot, rows

_COUNTS = "r.state IN ('activated', 'refused')"


async def held_out_and_trained(bot: Bot) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Turn → the runs that held it out, and those that trained on it; of runs that count."""
    held_out: dict[str, list[int]] = {}
    trained: dict[str, list[int]] = {}
    for turn, split, run in await rows(
        bot.store,
        "SELECT i.turn, i.split, i.run FROM run_items i JOIN runs r ON r.id = i.run"
        f" WHERE {_COUNTS} AND NOT i.replayed ORDER BY i.run",
    ):
        (trained if split == "train" else held_out).setdefault(turn, []).append(run)
    return held_out, trained


async def holds(bot: Bot) -> None:
    """Nothing is kept twice, and nothing is kept by a run after one that has learnt it."""
    held_out, trained = await held_out_and_trained(bot)
    assert all(len(runs) == 1 for runs in held_out.values()), held_out
    for turn, (run,) in held_out.items():
        assert all(run < later for later in trained.get(turn, [])), turn
    await check(bot)


async def undo(bot: Bot, number: int) -> None:
    await bot.unreact(bot.answers[number], "👍" if number % 2 == 0 else "👎")
    await bot.settle()


@pytest.mark.parametrize(
    "story",
    [
        "ok ok ok ok",
        "ok refuse ok refuse ok",
        "nan ok crash ok",
        "ok ok undo-trained ok ok",
        "ok undo-held ok refuse undo-trained ok",
    ],
)
async def test_each_rating_is_held_out_once_at_most_and_trains_in_a_later_round(
    tmp_path: Path, story: str
) -> None:
    async with open_bot(tmp_path) as bot:
        taken_back: set[str] = set()
        for happening in story.split():
            if happening.startswith("undo"):
                sides = await held_out_and_trained(bot)
                first = next(iter(sides[happening == "undo-trained"]))
                number = next(n for n, a in enumerate(bot.answers) if a.turn == first)
                taken_back.add(first)
                await undo(bot, number)
            else:
                bot.fake.set(train=happening)
                await bot.rated(8)
                await bot.train()
            await holds(bot)
        held_out, trained = await held_out_and_trained(bot)
        last = max(run for runs in held_out.values() for run in runs)
        earlier = {turn for turn, (run,) in held_out.items() if run < last} - taken_back
        assert earlier, "the story is long enough to see it"
        assert earlier <= trained.keys()


async def judged_by(bot: Bot, version: int, what: str = "judged") -> list[Any]:
    directory = await bot.app.registry.path(version)
    return json.loads((directory / "adapter_config.json").read_text())[what]


def gate(n: int) -> dict[str, float]:
    return {"held_out": float(n), "xx": 1.0 * n, "xy": 0.5 * n, "yy": 0.25 * n}


async def test_the_gate_gets_what_earlier_rounds_that_count_have_found(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for n, (mode, state) in enumerate(
            [("ok", "activated"), ("refuse", "refused"), ("nan", "failed"), ("ok", "activated")], 1
        ):
            bot.fake.set(train=mode, gate=gate(n))
            await bot.rated(8)
            assert (await bot.train()).state == state
        assert await judged_by(bot, 1) == []
        assert await judged_by(bot, 2) == [
            {"n": 2, "xx": 2.0, "xy": 1.0, "yy": 0.5},
            {"n": 1, "xx": 1.0, "xy": 0.5, "yy": 0.25},
        ]
        # A run that is only looked ahead to, after all of these, gets them as well.
        pool = bot.app.trainer._pool
        ahead = await bot.store.read(lambda db: verdicts.judged(db, pool, 2**62))
        assert [entry["n"] for entry in ahead] == [4, 2, 1]
        # What is undone is not counted any more: its ratings may be held out again.
        second = await bot.trained_by(2)
        number = next(n for n, a in enumerate(bot.answers) if a.turn in second)
        await undo(bot, number)
        newest = await bot.app.registry.active()
        assert newest > 2
        assert [entry["n"] for entry in await judged_by(bot, newest)] == [2, 1]


async def test_a_round_without_both_signs_or_sums_tells_the_next_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for metrics in ({"score": 1.0}, gate(0), gate(8)):
            bot.fake.set(gate=metrics)
            await bot.rated(8)
            await bot.train()
        assert await judged_by(bot, 3) == []


async def test_the_gate_asks_again_what_was_asked_in_earlier_rounds(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for mode in ("ok", "nan", "ok"):
            bot.fake.set(train=mode)
            await bot.rated(8)
            await bot.train()
        assert sorted(await judged_by(bot, 1, "asked")) == [f"question {n}" for n in range(8)]
        asked = await judged_by(bot, 2, "asked")
        assert len(asked) == len(set(asked)) == 24, "each once; the failed round's are this one's"
        assert set(asked[18:]) <= {f"question {n}" for n in range(8)}, "its own come first"
