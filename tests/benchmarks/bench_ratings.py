# SPDX-License-Identifier: Apache-2.0
"""The page of ratings over many rated answers: how long each kind of look takes, at the median and at 95 %.

Each is asked of the store, and then of a whole goodbot over HTTP, by an owner who has signed in: on
loopback, by a client in the same process, which reads each answer to its end.

python -m tests.benchmarks.bench_ratings --answers 100000
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import quantiles

import aiohttp
import goodbot_connectors.web
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, UserRef
from goodbot.api.turns import Turn
from goodbot.config import HttpConfig
from goodbot.daemon.control import execute
from goodbot.store import Store, ledger, rated, turns
from goodbot.store.review_queue import Viewer
from goodbot.store.selection import Selection
from goodbot.store.training_pool import Pool

from tests.benchmarks.table import row
from tests.core.builders import Bot, copied, open_bot, rate
from tests.support import free_port

Place = tuple[float, int]
Look = Callable[[Selection, Place], Awaitable[int]]
DAY = 86400.0
NOW = 1.8e9
OWNER = Viewer(person="bench:1", accounts=("bench:1",), owner=True)
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
        async with _goodbot(Path(directory)) as bot, _signed_in(bot) as http:
            model = bot.app.model.name
            await _fill(bot.store, answers, model)
            pool = Pool(scope="default", model=model, owners=("bench:1",))
            print(f"\n## The page of ratings, {answers:,} rated answers, {looks} looks each\n")
            row("look", "found", "p50 ms", "p95 ms", head=True)
            drawn = random.Random(30)
            ways: Mapping[str, Look] = {
                "": partial(_of_store, bot.store, pool),
                ", over HTTP": partial(_over_http, http),
            }
            for name, wanted in LOOKS.items():
                # Somewhere in it, as those who page come to it.
                places = [
                    rated.NO_END if wanted.since else (NOW - drawn.random() * 25 * DAY, 1 << 62)
                    for _ in range(looks)
                ]
                for way, look in ways.items():
                    took: list[float] = []
                    found = 0
                    for after in places:
                        began = time.perf_counter()
                        found += await look(wanted, after)
                        took.append(1000 * (time.perf_counter() - began))
                    cuts = quantiles(took, n=20, method="inclusive")
                    row(f"{name}{way}", f"{found / looks:.0f}", f"{cuts[9]:.0f}", f"{cuts[18]:.0f}")


@contextlib.asynccontextmanager
async def _goodbot(home: Path) -> AsyncIterator[Bot]:
    sections = {"http": HttpConfig(port=free_port()), "connectors": {"web": {}}}
    async with open_bot(home, extra=(goodbot_connectors.web,), sections=sections, terminal=True) as bot:
        yield bot


@contextlib.asynccontextmanager
async def _signed_in(bot: Bot) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser of the owner's."""
    link = (await execute(bot.app, "web", ())).text.splitlines()[0]
    address, _, code = link.partition("/login#")
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(address, cookie_jar=jar, headers={"Origin": address}) as http:
        async with http.post("/api/login", json={"code": code}) as response:
            response.raise_for_status()
        yield http


async def _of_store(store: Store, pool: Pool, wanted: Selection, after: Place) -> int:
    page, _ = await store.read(lambda db: rated.page(db, OWNER, pool, wanted, after=after))
    return len(page)


async def _over_http(http: aiohttp.ClientSession, wanted: Selection, after: Place) -> int:
    said = {name: value if isinstance(value, str) else f"{value:.0f}" for name, value in _told(wanted)}
    if after != rated.NO_END:
        said["after"] = f"{after[0]!r} {after[1]}"
    async with http.get("/api/ratings", params=said) as response:
        response.raise_for_status()
        return len((await response.json())["answers"])


def _told(wanted: Selection) -> list[tuple[str, str | float]]:
    """What a page's address says of it."""
    return [(name, value) for name, value in wanted.told().items() if isinstance(value, str | int | float)]


async def _fill(store: Store, answers: int, model: str) -> None:
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
        model=model,
        temperature=0.8,
        created_at=NOW - 30 * DAY,
        tokens=[7] * 200,
        logprobs=[-0.5] * 200,
        prompt_tokens=[7] * 120,
    )
    await store.write(lambda db: turns.insert(db, turn, trainable=True))
    event = rate("like", 0, 1.0, turn="like", user=user, channel=channel, message_id="", source="bench")
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
