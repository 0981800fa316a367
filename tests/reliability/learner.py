# SPDX-License-Identifier: Apache-2.0
"""A goodbot that trains, for tests that kill it: `python -m tests.reliability.learner HOME RATINGS`.

It rates so many answers (0: none), trains, and says `step N` before each step of the fake model.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.core.builders import open_bot


async def main(home: Path, ratings: int) -> None:
    async with open_bot(home) as bot:
        if ratings:
            await bot.rated(ratings)
            await bot.command("train")
        told = -1
        while True:
            progress = bot.app.scheduler.progress or {}
            if progress.get("phase") == "train" and progress["step"] != told:
                told = progress["step"]
                print(f"step {told}", flush=True)
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
