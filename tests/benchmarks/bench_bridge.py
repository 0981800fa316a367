"""The bridge: an answer reported and rated by HTTP, both durable before they are answered.

The daemon is a process of its own, on one processor where the system lets us say so; 64 clients, each
with a connection and a token, send pair after pair. A processor's seconds are those of the whole
daemon, its database's thread among them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import goodbot_connectors.api
from aiohttp import web
from goodbot.config import HttpConfig
from goodbot.events import UserRef
from goodbot.store import turns
from goodbot_connectors.bridge import clients

from tests.core.builders import Bot, open_bot, turn

CLIENTS = 64
HALF_OPEN = 1000
OPEN_TURNS = 100_000
_BODY = {
    "messages": [
        {"role": "system", "content": "You are a careful assistant. " * 20},
        {"role": "user", "content": "How many moons has Mars, and what are they called?"},
    ],
    "response": "Two: Phobos and Deimos. " * 8,
    "model": "somebody-elses",
}


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_bridge")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--open-turns", type=int, default=OPEN_TURNS)
    parser.add_argument("--serve", nargs=2, metavar=("HOME", "PORT"), help=argparse.SUPPRESS)
    parser.add_argument("--profile", default="", help="write the daemon's cProfile there")
    options = parser.parse_args(arguments)
    if options.serve:
        home, port = options.serve
        bare = _bare(int(port)) if not home else None
        return asyncio.run(bare or _serve(Path(home), int(port), options.profile))
    print("\n## The bridge\n")
    _row("what", "pairs/s", "CPU ms a pair", "p50 ms", "p99 ms", head=True)
    for line in asyncio.run(measure(options.seconds, options.open_turns, options.profile)):
        _row(*line)


async def measure(seconds: float, open_turns: int, profile: str = "") -> list[list[str]]:
    """The lines of the table; the first is what two requests cost that do nothing at all."""
    with tempfile.TemporaryDirectory() as place:
        async with daemon(None) as far:
            bare = await pairs(far, CLIENTS, seconds, f"aiohttp alone, {CLIENTS} clients")
        async with daemon(Path(place), profile) as far:
            lines = [bare, await pairs(far, CLIENTS, seconds, f"{CLIENTS} clients")]
            lines.append(
                await pairs(far, CLIENTS, seconds, "the same in one request", at_once=True)
            )
            lines.append(await pairs(far, 1, seconds / 4, "one client"))
            lines.append(await half_open(far, HALF_OPEN, seconds / 4))
            await far.fill(open_turns)
            lines.append(await pairs(far, CLIENTS, seconds, f"{open_turns} open turns"))
    return lines


# -- the daemon


class Far:
    """The daemon, as its own process."""

    def __init__(self, process: Any, port: int, tokens: list[str]) -> None:
        self._process, self.port, self.tokens = process, port, tokens

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
async def daemon(home: Path | None, profile: str = "") -> AsyncGenerator[Far]:
    """goodbot with that home; without one a server of the same two routes that does nothing."""
    names = [f"c{n}" for n in range(CLIENTS)]
    tokens = [clients.create(home / "bot", "api", name) if home else "none" for name in names]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.bench_bridge", "--serve", str(home or ""), str(port),
        "--profile", profile, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield Far(process, port, tokens)
    finally:
        process.stdin.close()
        await process.wait()


async def _bare(port: int) -> None:
    _on_one_processor()

    async def answer(request: web.Request) -> web.Response:
        await request.json()
        return web.json_response({"turn": "t", "text": "Kept."}, status=201)

    application = web.Application()
    application.router.add_post("/v1/turns", answer)
    application.router.add_post("/v1/feedback", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(time.process_time(), flush=True)
    await runner.cleanup()


def _on_one_processor() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


async def _serve(home: Path, port: int, profile: str) -> None:
    _on_one_processor()
    names = [f"c{n}" for n in range(CLIENTS)]
    sections = {"http": HttpConfig(port=port), "connectors": {"api": {"owners": names}}}
    async with open_bot(home, extra=(goodbot_connectors.api,), sections=sections) as bot:
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
                like, id=f"open{number}", channel=_place(number % CLIENTS), origin="captured",
                talker=_asker(number % CLIENTS), created_at=time.time(),
            )  # fmt: skip
            await turns.insert(db, one, trainable=True)

    await bot.store.write(operation)


def _place(number: int) -> Any:
    like = turn("x").channel
    return dataclasses.replace(like, connector="api", account="local", id=f"c{number}")


def _asker(number: int) -> UserRef:
    return UserRef(connector="api", account="local", id=f"c{number}")


# -- the clients


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self.seconds: list[float] = []

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    def close(self) -> None:
        self._writer.close()

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self._writer.write(head.encode() + data)
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = int(said.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        answer = json.loads(await self._reader.readexactly(length))
        assert said[9:11] == b"20", answer
        return answer

    async def pair(self) -> None:
        began = time.perf_counter()
        kept = await self.post("/v1/turns", _BODY)
        await self.post("/v1/feedback", {"turn": kept["turn"], "score": 1})
        self.seconds.append(time.perf_counter() - began)

    async def at_once(self) -> None:
        began = time.perf_counter()
        await self.post("/v1/turns", {**_BODY, "feedback": {"score": 1}})
        self.seconds.append(time.perf_counter() - began)


async def pairs(
    far: Far, count: int, seconds: float, what: str, *, at_once: bool = False
) -> list[str]:
    """Pair after pair of so many clients; `at_once`: the rating comes with the answer."""
    callers = [Client(far.port, token) for token in far.tokens[:count]]
    for caller in callers:
        await caller.open()
    cpu, began = await far.cpu(), time.perf_counter()

    async def run(caller: Client) -> None:
        while time.perf_counter() - began < seconds:
            await (caller.at_once() if at_once else caller.pair())

    await asyncio.gather(*map(run, callers))
    took, used = time.perf_counter() - began, await far.cpu() - cpu
    for caller in callers:
        caller.close()
    return _line(what, [one for caller in callers for one in caller.seconds], took, used)


async def half_open(far: Far, count: int, seconds: float) -> list[str]:
    """One client, with a connection of its own for each pair, beside sockets that never ask."""
    crowd = [socket.create_connection(("127.0.0.1", far.port)) for _ in range(count)]
    for one in crowd:
        with contextlib.suppress(OSError):
            one.sendall(b"POST /v1/turns HTTP/1.1\r\nHost: 127.0")
    told: list[float] = []
    cpu, began = await far.cpu(), time.perf_counter()
    while (start := time.perf_counter()) - began < seconds or len(told) < 2:
        caller = Client(far.port, far.tokens[0])
        await caller.open()
        await caller.pair()
        told.append(time.perf_counter() - start)
        caller.close()
    used = await far.cpu() - cpu
    for one in crowd:
        one.close()
    return _line(f"beside {count} half-open sockets", told, time.perf_counter() - began, used)


def _line(what: str, told: list[float], took: float, used: float) -> list[str]:
    p99 = quantiles(told, n=100)[98] if len(told) > 1 else told[0]
    return [
        what, f"{len(told) / took:.0f}", f"{1e3 * used / len(told):.2f}", f"{1e3 * median(told):.1f}",
        f"{1e3 * p99:.1f}",
    ]  # fmt: skip


def _row(*cells: str, head: bool = False) -> None:
    print("| " + " | ".join(cells) + " |")
    if head:
        print("|" + "---|" * len(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
