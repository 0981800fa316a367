# SPDX-License-Identifier: Apache-2.0
"""kill -9 of goodbot in the middle of a training: the next start goes on with it, and nobody else does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.core.builders import Fake, check, open_bot, rows, until
from tests.support import patience


def orphans(home: Path) -> list[int]:
    """Trainers that work in this directory, whoever their parent is now."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"train" in command and os.fsencode(home) in environment:
                found.append(int(entry.name))
    return found


async def killed_at(home: Path, step: int, ratings: int) -> None:
    """Start a goodbot and kill it before a step that it is held at."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.reliability.learner",
        str(home),
        str(ratings),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(home)},
    )
    assert process.stdout is not None
    async with asyncio.timeout(patience(60)):
        while line := await process.stdout.readline():
            if line == b"step %d\n" % step:
                break
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert process.returncode == -signal.SIGKILL
    await until(lambda: not orphans(home))


async def test_each_step_is_done_once_however_often_goodbot_is_killed(tmp_path: Path) -> None:
    fake = Fake(tmp_path / "fake")
    for kill, step in enumerate((1, 4)):
        fake.set(train="steps", hold=step)
        await killed_at(tmp_path, step, ratings=0 if kill else 8)
    fake.set(hold=None)
    async with open_bot(tmp_path) as bot:
        bot.fake.set(train="steps")
        await bot.settle()
        assert [(run, step) for run, step, _ in bot.fake.steps()] == [(1, n) for n in range(6)]
        assert await rows(bot.store, "SELECT id, state FROM runs") == [(1, "activated")]
        await check(bot)
