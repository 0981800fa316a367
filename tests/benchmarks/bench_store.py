# SPDX-License-Identifier: Apache-2.0
"""Durable ratings a second: one commit each against group commit, and the limit, a bare fsync.

Interleaved and repeated, medians; the machine's own fsync rate is measured beside, on the same disk. Then
what an answer that is brought in and rated costs one program beside many ratings that wait for a training,
and how long a rating takes while a training claims these.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    ChannelRef,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    UserRef,
)
from goodbot.api.sentences import in_words
from goodbot.api.turns import Turn
from goodbot.config import Grants
from goodbot.conversation.ingest import Dispatcher
from goodbot.store import Store, ledger, training_pool
from goodbot.store import turns as turn_store

from tests.benchmarks.table import row
from tests.core import dispatching
from tests.core.builders import Bot, add_turn, copied, open_bot
from tests.core.made import rate as said

EVENTS = 1024
ROUNDS = 5
PRODUCERS = (1, 8, 64, 256)
WAITING = (0, 20_000, 200_000)
NEEDED = (40, 1_000_000)
PAIRS = 40
CLAIMED = (1_000, 5_000, 50_000)

_GRANTS = {"bench": Grants(owners=("1",))}
_POOL = training_pool.Pool(scope="default", model="m", owners=("bench:1",))
_USER = UserRef(connector="bench", account="bench", id="1")
_CHANNEL = ChannelRef(connector="bench", account="bench", id="c", kind=ChannelKind.PRIVATE)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_store")
    parser.add_argument("--only", choices=("durable", "waiting", "claimed"))
    only = parser.parse_args(arguments).only
    if only in (None, "durable"):
        _durable()
    if only in (None, "waiting"):
        asyncio.run(_waiting())
    if only in (None, "claimed"):
        asyncio.run(_claimed())


def _durable() -> None:
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
            dispatcher = dispatching.dispatcher(store, _GRANTS, _POOL)
            for number in range(EVENTS):
                await _answer(store, f"t{number}")
            for round_ in range(ROUNDS):
                samples[0].append((_fsyncs(Path(directory)), 0.0))
                for producers in PRODUCERS:
                    samples[producers].append(await _rate(dispatcher, producers, round_))
        finally:
            await store.close()
    return {n: (median(r for r, _ in found), median(c for _, c in found)) for n, found in samples.items()}


async def _waiting() -> None:
    """The pairs beside so many waiting, in turns; how many a round needs is the first column."""
    print("\n## An answer brought in and rated, both committed, beside ratings that wait\n")
    row("a round needs", *(f"{n:,} wait: ms" for n in WAITING), "processor ms", head=True)
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dispatchers: dict[tuple[int, int], Dispatcher] = {}
        for waiting in WAITING:
            store = await Store.open(directory / f"{waiting}.db")
            stack.push_async_callback(store.close)
            for needed in NEEDED:
                dispatchers[waiting, needed] = dispatching.dispatcher(store, _GRANTS, _POOL, needed)
            await _answer(store, "like")
            await dispatchers[waiting, NEEDED[0]].submit([_rating("like", "like", 0, 1.0)], "bench")
            if waiting:
                await copied(store, "like", 1, waiting)
        times: dict[tuple[int, int], list[tuple[float, float]]] = {of: [] for of in dispatchers}
        for number in range(ROUNDS * PAIRS):
            for of, dispatcher in dispatchers.items():
                times[of].append(await _pair(dispatcher, f"{of[1]}-{number}"))
    for needed in NEEDED:
        found = [times[waiting, needed] for waiting in WAITING]
        wall = [f"{1e3 * median(wall for wall, _ in one):.2f}" for one in found]
        cpu = [f"{1e3 * median(cpu for _, cpu in one):.2f}" for one in found]
        row(f"{needed:,}", *wall, ", ".join(cpu))


async def _claimed() -> None:
    """How long a rating takes while a run claims what waits, with and without one that changes."""
    print("\n## A rating while a run claims, of answers of 700 characters\n")
    row("wait", "of them change", "the claim, s", "ratings", "p50 ms", "p99 ms", "longest ms", head=True)
    for waiting in CLAIMED:
        for changing in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                async with open_bot(Path(directory), min_ratings=40, held_out=8) as bot:
                    took, times = await _while_claimed(bot, waiting, changing)
            cuts = quantiles(times, n=100, method="inclusive")
            own = [f"{1e3 * one:.0f}" for one in (cuts[49], cuts[98], max(times))]
            row(f"{waiting:,}", int(changing), f"{took:.1f}", len(times), *own)


async def _while_claimed(bot: Bot, waiting: int, changing: bool) -> tuple[float, list[float]]:
    """How long the claim took, and each rating, which is of a claimed answer or of one without a rating."""
    answer = await bot.say("How much is 2 + 2?")
    if changing:
        await bot.react(answer, "👍")
    await add_turn(bot.store, "like", model=bot.app.pool.model)
    given = said("like", 1, 1.0, "like")
    receipt = given.receipt(Outcome.ACCEPTED, turn="like")
    await bot.store.write(lambda db: ledger.insert(db, given, "like", "loopback:owner", receipt, 1.0))
    numbers = ",".join(map(str, range(120)))
    text = (
        "(SELECT group_concat(value, ' ') FROM (SELECT (i * 7919 + value * 104729) % 50000 AS value"
        f" FROM json_each('[{numbers}]')))"
    )
    asked = f"json_array(json_object('role', 'user', 'content', {text}))"
    await copied(bot.store, "like", 2, waiting, messages=asked, response=text)
    claiming = asyncio.create_task(bot.app.trainer._claimed(0, in_words("a measurement"), 1, False))
    begin, times = time.perf_counter(), list[float]()
    while not claiming.done() or len(times) < 2:
        since = time.perf_counter()
        await bot.react(answer, "👎" if len(times) % 2 else "👍")
        times.append(time.perf_counter() - since)
        await asyncio.sleep(0.02)
    await claiming
    return time.perf_counter() - begin, times


async def _pair(dispatcher: Dispatcher, name: str) -> tuple[float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    capture = CaptureEvent(
        event_id=f"c{name}",
        order=OrderKey(0),
        user=_USER,
        channel=_CHANNEL,
        response="4.",
        messages=({"role": "user", "content": "How much is 2 + 2?"},),
        model="cloud",
    )
    [kept] = await dispatcher.submit([capture], "bench")
    await dispatcher.submit([_rating(f"r{name}", kept.turn, 0, 1.0)], "bench")
    return time.perf_counter() - begin, time.process_time() - cpu


async def _answer(store: Store, name: str) -> None:
    turn = Turn(
        id=name,
        channel=_CHANNEL,
        talker=_USER,
        messages=[{"role": "user", "content": "How much is 2 + 2?"}],
        response="4.",
        version=0,
        model="m",
        temperature=0.8,
        created_at=0.0,
    )
    await store.write(lambda db: turn_store.insert(db, turn, trainable=True))


def _rating(event: str, turn: str, at: int, value: float) -> RatingEvent:
    return RatingEvent(
        event_id=event,
        order=OrderKey(at),
        user=_USER,
        channel=_CHANNEL,
        kind=RatingKind.RATE,
        turn=turn,
        source="bench",
        value=value,
    )


async def _rate(dispatcher: Dispatcher, producers: int, round_: int) -> tuple[float, float]:
    async def produce(first: int) -> None:
        for number in range(first, EVENTS, producers):
            value = 1.0 if (number + round_) % 2 else -1.0
            rating = _rating(f"{producers}-{round_}-{number}", f"t{number}", round_, value)
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
    main(sys.argv[1:])
