"""Durable ratings a second: one commit each against group commit, and the limit, a bare fsync.

Interleaved and repeated, medians; the machine's own fsync rate is measured beside, on the same disk.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from goodbot.clock import SystemClock
from goodbot.config import Grants, ServingConfig
from goodbot.dispatcher import Dispatcher
from goodbot.events import (
    ChannelKind,
    ChannelRef,
    Event,
    OrderKey,
    RatingEvent,
    RatingKind,
    Receipt,
    UserRef,
)
from goodbot.people.authorization import Authorization
from goodbot.people.limits import Quotas
from goodbot.plugins import PluginHost
from goodbot.store import Store, runs
from goodbot.store import turns as turn_store
from goodbot.turns import Turn

EVENTS = 1024
ROUNDS = 5
PRODUCERS = (1, 8, 64, 256)

_USER = UserRef(connector="bench", account="bench", id="1")
_CHANNEL = ChannelRef(connector="bench", account="bench", id="c", kind=ChannelKind.PRIVATE)


def main() -> None:
    """Print the table."""
    rates = asyncio.run(_measure())
    print("\n## Durable ratings: dispatcher → ledger → fold → label → receipt, synchronous=FULL\n")
    print("| concurrent producers | ratings/s | µs CPU each | share of the fsync rate × batch 1 |")
    print("|---|---|---|---|")
    syncs = rates.pop(0)[0]
    for producers, (rate, cpu) in rates.items():
        print(f"| {producers} | {rate:,.0f} | {cpu * 1e6:.0f} | {rate / syncs:.1f} × |")
    print(f"\nA 4 KiB write and fsync on this disk: {syncs:,.0f}/s.")


async def _measure() -> dict[int, tuple[float, float]]:
    samples: dict[int, list[tuple[float, float]]] = {0: [], **{n: [] for n in PRODUCERS}}
    with tempfile.TemporaryDirectory() as directory:
        store = await Store.open(Path(directory) / "bench.db")
        try:
            dispatcher = await _dispatcher(store)
            for round_ in range(ROUNDS):
                samples[0].append((_fsyncs(Path(directory)), 0.0))
                for producers in PRODUCERS:
                    samples[producers].append(await _rate(dispatcher, producers, round_))
        finally:
            await store.close()
    return {
        n: (median(r for r, _ in found), median(c for _, c in found))
        for n, found in samples.items()
    }


async def _dispatcher(store: Store) -> Dispatcher:
    dispatcher = Dispatcher(
        store=store,
        authorization=Authorization({"bench": Grants(owners=("1",))}),
        plugins=PluginHost(),
        clock=SystemClock(),
        pool=runs.Pool(scope="default", model="m", owners=("bench:1",)),
        min_ratings=40,
        quotas=Quotas(ServingConfig(), Path("/"), SystemClock()),
    )

    async def nothing(event: Event) -> None:
        pass

    async def silent(event: Event, receipt: Receipt) -> None:
        pass

    dispatcher.wire(
        answer=nothing, command=nothing, acknowledge=silent, rated=lambda: None, talked=lambda: None
    )
    for number in range(EVENTS):
        turn = Turn(
            id=f"t{number}", channel=_CHANNEL, talker=_USER,
            messages=[{"role": "user", "content": "How much is 2 + 2?"}], response="4.", version=0,
            model="m", temperature=0.8, created_at=0.0,
        )  # fmt: skip
        await store.write(lambda db, t=turn: turn_store.insert(db, t, trainable=True))
    return dispatcher


async def _rate(dispatcher: Dispatcher, producers: int, round_: int) -> tuple[float, float]:
    async def produce(first: int) -> None:
        for number in range(first, EVENTS, producers):
            rating = RatingEvent(
                event_id=f"{producers}-{round_}-{number}", order=OrderKey(round_), user=_USER,
                channel=_CHANNEL, kind=RatingKind.RATE, turn=f"t{number}", source="bench",
                value=1.0 if (number + round_) % 2 else -1.0,
            )  # fmt: skip
            await dispatcher.submit([rating], "bench")

    begin, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(produce(first) for first in range(producers)))
    seconds, spent = time.perf_counter() - begin, time.process_time() - cpu
    return EVENTS / seconds, spent / EVENTS


def _fsyncs(directory: Path) -> float:
    fd = os.open(directory / "probe", os.O_CREAT | os.O_WRONLY, 0o600)
    begin = time.perf_counter()
    for _ in range(200):
        os.pwrite(fd, b"\0" * 4096, 0)
        os.fsync(fd)
    os.close(fd)
    return 200 / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
