# SPDX-License-Identifier: Apache-2.0
"""The page of ratings over many rated answers: how long each kind of look takes, at the median and at 95 %.

python -m tests.benchmarks.bench_ratings --answers 100000
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

from goodbot.api.events import ChannelKind, ChannelRef, OrderKey, Outcome, RatingEvent, RatingKind, UserRef
from goodbot.api.turns import Turn
from goodbot.store import Store, ledger, rated, turns
from goodbot.store.review_queue import Viewer
from goodbot.store.selection import Selection
from goodbot.store.training_pool import Pool

from tests.benchmarks.table import row
from tests.core.builders import copied

DAY = 86400.0
NOW = 1.8e9
OWNER = Viewer(person="bench:1", accounts=("bench:1",), owner=True)
POOL = Pool(scope="default", model="m", owners=("bench:1",))
LOOKS = {
    "the newest": Selection(),
    "bad": Selection(rating="bad"),
    "a word that many hold": Selection(text="answer 7"),
    "a word that none holds": Selection(text="xylophone"),
    "a person": Selection(person="bench:3"),
    "a week in the middle": Selection(since=NOW - 20 * DAY, until=NOW - 13 * DAY),
    "a version": Selection(version=3),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_ratings")
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--looks", type=int, default=40)
    options = parser.parse_args(arguments)
    asyncio.run(_measure(options.answers, options.looks))


async def _measure(answers: int, looks: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = await Store.open(Path(directory) / "bench.db")
        try:
            await _fill(store, answers)
            print(f"\n## The page of ratings, {answers:,} rated answers, {looks} looks each\n")
            row("look", "found", "p50 ms", "p95 ms", head=True)
            drawn = random.Random(30)
            for name, wanted in LOOKS.items():
                took: list[float] = []
                found = 0
                for _ in range(looks):  # somewhere in it, as those who page come to it
                    after = rated.NO_END if wanted.since else (NOW - drawn.random() * 25 * DAY, 1 << 62)
                    began = time.perf_counter()
                    page, _ = await store.read(
                        lambda db, w=wanted, a=after: rated.page(db, OWNER, POOL, w, after=a)
                    )
                    took.append(1000 * (time.perf_counter() - began))
                    found += len(page)
                cuts = quantiles(took, n=20, method="inclusive")
                row(name, f"{found / looks:.0f}", f"{cuts[9]:.0f}", f"{cuts[18]:.0f}")
        finally:
            await store.close()


async def _fill(store: Store, answers: int) -> None:
    """Thirty days of them, of ten people and five versions."""
    channel = ChannelRef(connector="bench", account="bench", id="c", kind=ChannelKind.SHARED)
    user = UserRef(connector="bench", account="bench", id="1")
    turn = Turn(
        id="like",
        channel=channel,
        talker=user,
        messages=[{"role": "user", "content": "How much is 2 + 2, and how do you know? " * 8}],
        response="4.",
        version=0,
        model="m",
        temperature=0.8,
        created_at=NOW - 30 * DAY,
        tokens=[7] * 200,
        logprobs=[-0.5] * 200,
        prompt_tokens=[7] * 120,
    )
    await store.write(lambda db: turns.insert(db, turn, trainable=True))
    event = RatingEvent(
        event_id="like",
        order=OrderKey(0),
        user=user,
        channel=channel,
        kind=RatingKind.RATE,
        turn="like",
        source="bench",
        value=1.0,
    )
    receipt = event.receipt(Outcome.ACCEPTED, turn="like")
    await store.write(lambda db: ledger.insert(db, event, "like", "bench:1", receipt, NOW))
    step = 30 * DAY / answers
    await copied(
        store,
        "like",
        1,
        answers,
        created_at=f"{NOW - 30 * DAY} + i * {step}",
        response="'answer ' || i || ' of many words, as models give them. ' || hex(zeroblob(300))",
        talker="i % 10",
        version="i % 5",
    )
    await store.write(lambda db: db.execute("UPDATE labels SET value = -1 WHERE turn GLOB '*[05]'"))


if __name__ == "__main__":
    main()
