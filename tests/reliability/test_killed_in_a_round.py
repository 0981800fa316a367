# SPDX-License-Identifier: Apache-2.0
"""kill -9 of goodbot at each step of a round: the next start brings the same answers to a verdict, once.

Steps of a training itself are in `test_killed_while_training.py`, others of going live in
`tests/core/learning/adapters/test_registry.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from goodbot.base import spawn
from goodbot.conversation.notifications.owners import news_key
from goodbot.store import ledger, news

from tests.core.builders import Bot, Fake, check, open_bot, rows, until
from tests.reliability.kills import KILLS, each
from tests.reliability.mortal import RATINGS, STEPS
from tests.reliability.test_killed_while_training import orphans
from tests.support import patience

OWNER = "loopback:owner"


async def killed(home: Path, step: str) -> dict[str, float]:
    """Let a goodbot be killed at a step; what it has acknowledged until then, turn → rating."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.reliability.mortal",
        str(home),
        step,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(home)},
    )
    try:
        async with asyncio.timeout(patience(60)):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == -signal.SIGKILL, "it never came to that step"
    await until(lambda: not orphans(home), seconds=60)
    return {turn: float(value) for turn, value in map(str.split, out.decode().splitlines())}


async def came_to(bot: Bot, run: int, rated: dict[str, float]) -> None:
    """What was rated is there and was learnt once, in one version of this run; nothing else is left."""
    for turn, value in rated.items():
        assert await bot.store.read(lambda db, t=turn: ledger.labels(db, t)) == {OWNER: value}
    items = await rows(bot.store, "SELECT turn, split FROM run_items WHERE run = ?", (run,))
    assert sorted(turn for turn, _ in items) == sorted(rated)
    learnt = await bot.trained_by(await bot.app.registry.active())
    assert learnt.keys() == {turn for turn, split in items if split == "train"}
    assert await rows(bot.store, "SELECT run FROM adapters WHERE tainted = ''") == [(run,)]
    assert [step for of, step, _ in bot.fake.steps() if of == run] == [*range(6)]
    assert [*(bot.app.config.home / "staging").iterdir()] == []


@pytest.mark.parametrize("step", each([*STEPS], KILLS))
async def test_killed_at_any_step_of_a_round_it_comes_to_one_verdict_of_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(spawn, "_place", lambda: tmp_path)
    rated = await killed(tmp_path, step)
    assert len(rated) == RATINGS
    Fake(tmp_path / "fake").set(train="steps")
    # Of a version that is recorded and not live, an undo would not know any more: another run makes the next.
    before = [(1, "superseded")] if step == "recorded" else []
    run = 1 + len(before)
    async with open_bot(tmp_path, schedule="auto") as bot:

        async def ended() -> bool:
            states = await rows(bot.store, "SELECT state FROM runs ORDER BY id")
            return states[-1:] not in ([], [("running",)], [("superseded",)])

        await until(ended, seconds=60)
        await check(bot)
        all_runs = await rows(bot.store, "SELECT id, state FROM runs ORDER BY id")
        assert all_runs == [*before, (run, "activated")]
        await came_to(bot, run, rated)
        await until(lambda: bot.store.read(lambda db: news.told(db, news_key(run, OWNER))), seconds=60)
    await until(lambda: [*tmp_path.glob("goodbot-own-*")] == [], seconds=60)
