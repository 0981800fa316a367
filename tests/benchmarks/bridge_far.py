# SPDX-License-Identifier: Apache-2.0
"""The far side of `bench_bridge`, each a process of its own: goodbot, or servers that do less."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import goodbot_connectors.api
from aiohttp import web
from goodbot.api.events import CaptureEvent, OrderKey, Outcome, RatingEvent, RatingKind, Receipt, UserRef
from goodbot.config import HttpConfig
from goodbot.conversation import capture_rules
from goodbot.store import Store, inbox, ledger, news, settings, traces, turns
from goodbot.store.runs import Pool
from goodbot_connectors.kit.bridge import clients

from tests.core.builders import Bot, open_bot, turn

CLIENTS = 64
NAMES = [f"c{n}" for n in range(CLIENTS)]


class Far:
    """The daemon, as its own process."""

    def __init__(self, process: Any, port: int, tokens: list[str]) -> None:
        self._process, self.port, self.tokens = process, port, tokens
        self.pid: int = process.pid

    async def _say(self, line: str) -> str:
        self._process.stdin.write(f"{line}\n".encode())
        return (await self._process.stdout.readline()).decode().strip()

    async def cpu(self) -> float:
        """Seconds that it has used a processor."""
        return float(await self._say("cpu"))

    async def fill(self, count: int) -> None:
        """Store so many answers that nobody has rated."""
        await self._say(f"fill {count}")


@contextlib.asynccontextmanager
async def daemon(home: Path, profile: str = "", what: str = "goodbot") -> AsyncGenerator[Far]:
    """goodbot with that home, or a server of the same two routes that does less."""
    tokens = [clients.create(home / "bot", "api", name) for name in NAMES]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.bridge_far",
        what,
        str(home),
        str(port),
        profile,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield Far(process, port, tokens)
    finally:
        process.stdin.close()
        await process.wait()


Work = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def _bare(home: Path, port: int, profile: str) -> None:
    async def nothing(body: dict[str, Any]) -> dict[str, Any]:
        return {"turn": "t", "text": "Kept."}

    await _answer(port, nothing, nothing)


async def _stored(home: Path, port: int, profile: str) -> None:
    """What a pair does in the store: every statement of it, in two committed operations."""
    store = await Store.open(home / "goodbot.db")
    pool = Pool(scope="default", model="base", owners=("api:c0",))
    ids = (f"{number:032x}" for number in itertools.count())

    async def capture(body: dict[str, Any]) -> dict[str, Any]:
        event = CaptureEvent(
            event_id=next(ids),
            user=_asker(0),
            channel=_place(0),
            order=OrderKey(0, ""),
            messages=tuple(body["messages"]),
            response=body["response"],
            model=body["model"],
        )
        now = time.time()
        one = capture_rules.turn_of(event, base="base", scope="default", now=now, version=None)
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=one.id)

        async def operation(db: Any) -> None:
            await traces.known(db, event)
            await turns.insert(db, one, trainable=True)
            await inbox.insert(db, event, receipt, now, open_=False)

        await store.write(operation, quick=True)
        return {"turn": one.id, "text": "Kept."}

    async def rate(body: dict[str, Any]) -> dict[str, Any]:
        event = RatingEvent(
            event_id=next(ids),
            user=_asker(0),
            channel=_place(0),
            order=OrderKey(0, ""),
            turn=body["turn"],
            kind=RatingKind.RATE,
            value=1.0,
            source="api",
        )
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=event.turn)

        async def operation(db: Any) -> None:
            await ledger.find(db, event)
            await ledger.insert(db, event, event.turn, "api:c0", receipt, time.time(), overtaken=False)
            await news.level(db, pool, "api:c0", 40, event.turn)
            await ledger.set_receipt(db, event, receipt)

        await store.write(operation, quick=True)
        return {"turn": event.turn, "text": "Kept."}

    await _answer(port, capture, rate)
    await store.close()


async def _answer(port: int, capture: Work, rate: Work) -> None:
    """Two routes of aiohttp, until the standard input ends."""
    _on_one_processor()

    def route(work: Work) -> Any:
        async def answer(request: web.Request) -> web.Response:
            return web.json_response(await work(await request.json()), status=201)

        return answer

    application = web.Application()
    application.router.add_post("/v1/turns", route(capture))
    application.router.add_post("/v1/feedback", route(rate))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(time.process_time(), flush=True)
    await runner.cleanup()


def _on_one_processor() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


async def _serve(home: Path, port: int, profile: str) -> None:
    _on_one_processor()
    people = {"owners": NAMES[:1], "raters": NAMES[1:]}
    sections = {"http": HttpConfig(port=port), "connectors": {"api": people}}
    async with open_bot(home, extra=(goodbot_connectors.api,), sections=sections) as bot:
        await bot.store.write(_share)
        gc.collect()
        gc.freeze()  # as `goodbot run` does
        print("ready", flush=True)
        reading = asyncio.get_running_loop()
        profiler = _profiler() if profile else None
        while line := await reading.run_in_executor(None, sys.stdin.readline):
            if line.startswith("fill"):
                await _fill(bot, int(line.split()[1]))
            print(time.process_time(), flush=True)
        if profiler:
            profiler.disable()
            profiler.dump_stats(profile)


async def _share(db: Any) -> None:
    for name in NAMES:
        await settings.set_share(db, f"api:{name}", True, time.time())


SERVED = {"goodbot": _serve, "aiohttp alone": _bare, "aiohttp and the store alone": _stored}


def _profiler() -> Any:
    import cProfile

    profiler = cProfile.Profile(time.thread_time)
    profiler.enable()
    return profiler


async def _fill(bot: Bot, count: int) -> None:
    like = turn("x", channel=_place(0), model=bot.app.model.name)

    async def operation(db: Any) -> None:
        for number in range(count):
            one = dataclasses.replace(
                like,
                id=f"open{number}",
                channel=_place(number % CLIENTS),
                origin="captured",
                talker=_asker(number % CLIENTS),
                created_at=time.time(),
            )
            await turns.insert(db, one, trainable=True)

    await bot.store.write(operation)


def _place(number: int) -> Any:
    like = turn("x").channel
    return dataclasses.replace(like, connector="api", account="local", id=f"c{number}")


def _asker(number: int) -> UserRef:
    return UserRef(connector="api", account="local", id=f"c{number}")


if __name__ == "__main__":
    kind, place, number, profile_file = sys.argv[1:]
    asyncio.run(SERVED[kind](Path(place), int(number), profile_file))
