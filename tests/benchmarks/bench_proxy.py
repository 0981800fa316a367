# SPDX-License-Identifier: Apache-2.0
"""The capture proxy: what it adds to the first byte and to a whole answer, and what it costs in throughput.

Three processes: a fake upstream that writes a token every 20 ms, a whole goodbot whose proxy stands before
it and keeps every answer durably, and this one, which asks both ways in turns. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import aiohttp
import goodbot_connectors.api
from aiohttp import web
from goodbot.config import HttpConfig
from goodbot_connectors.kit.bridge import clients

from tests.core.builders import open_bot

TOKENS, PACE = 64, 0.02
"""Of an answer, and seconds between two of them."""
_AT_ONCE = 32
"""Connections that are opened in the same moment, where a crowd comes."""
_PATH = "/v1/chat/completions"


@dataclass(frozen=True, kw_only=True)
class Load:
    """How many streams there are at any time, and whether they began together."""

    streams: int
    crowd: bool = False
    """`_AT_ONCE` begin in the same moment and stay in step; else they are spread over an answer's time."""

    def __str__(self) -> str:
        return f"{self.streams}{f', {_AT_ONCE} in step' if self.crowd else ''}"

    def wait(self, number: int) -> float:
        """Seconds until one of them begins."""
        return number // _AT_ONCE * PACE if self.crowd else number / self.streams * TOKENS * PACE


LOADS = (Load(streams=1), Load(streams=100), Load(streams=100, crowd=True))


@dataclass(frozen=True, kw_only=True)
class Lap:
    """One round at one concurrency, one way. Seconds."""

    first: float
    """p50 from the request to the first byte of the answer."""
    whole: float
    """p50 of a whole answer."""
    rate: float
    """Answers a second, of all streams together."""


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_proxy")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--answers", type=int, default=3, help="of each stream in a round")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        return asyncio.run(_part(*options.part))
    print("\n## The capture proxy beside its upstream: medians, ms\n")
    head = ("streams", "way", "first byte p50", "answer p50", "answers/s", "kept")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in asyncio.run(measure(options.rounds, options.answers)):
        print("| " + " | ".join(row) + " |")


async def measure(rounds: int, answers: int, loads: Sequence[Load] = LOADS) -> list[list[str]]:
    """The rows of the table: direct, through, and the difference for each load."""
    cpu: list[float] = []
    with tempfile.TemporaryDirectory() as place, started(Path(place), cpu) as (direct, through, token):
        laps: dict[tuple[Load, str], list[Lap]] = {}
        asked = 0
        await lap(direct, "", loads[0], 1), await lap(through, token, loads[0], 1)  # to warm up
        for number in range(rounds):
            for load in loads:
                ways = [("direct", direct, ""), ("through", through, token)]
                for way, url, key in ways if number % 2 else reversed(ways):
                    laps.setdefault((load, way), []).append(await lap(url, key, load, answers))
                asked += load.streams * answers
        kept = _kept(Path(place))
        asked += loads[0].streams
        assert kept == asked, f"{kept} of {asked} answers were kept"
    rows = [row for load in loads for row in _rows(load, laps, answers * rounds * load.streams)]
    return [*rows, ["all", f"processor: {cpu[0] / kept * 1000:.1f} ms an answer", "", "", "", ""]]


def _rows(load: Load, laps: dict[tuple[Load, str], list[Lap]], kept: int) -> Iterator[list[str]]:
    middle = {
        way: Lap(
            first=median(one.first for one in laps[load, way]),
            whole=median(one.whole for one in laps[load, way]),
            rate=median(one.rate for one in laps[load, way]),
        )
        for way in ("direct", "through")
    }
    for way, one in middle.items():
        shown = str(kept) if way == "through" else "–"
        yield [str(load), way, f"{one.first * 1000:.1f}", f"{one.whole * 1000:.0f}", f"{one.rate:.1f}", shown]
    a, b = middle["direct"], middle["through"]
    added = f"{(b.first - a.first) * 1000:+.1f}", f"{(b.whole - a.whole) * 1000:+.0f}"
    yield [str(load), "added", *added, f"{(b.rate / a.rate - 1) * 100:+.1f} %", ""]


async def lap(url: str, token: str, load: Load, answers: int) -> Lap:
    """So many streams at once, each so many answers long."""
    firsts: list[float] = []
    wholes: list[float] = []
    rates: list[float] = []
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go on. " * 50}]}
    headers = {"Authorization": f"Bearer {token}"}

    async def stream(session: aiohttp.ClientSession, number: int) -> None:
        await asyncio.sleep(load.wait(number))
        started = time.perf_counter()
        for _ in range(answers):
            began = time.perf_counter()
            async with session.post(url + _PATH, json=body, headers=headers) as response:
                assert response.status == 200, await response.text()
                await response.content.readany()
                firsts.append(time.perf_counter() - began)
                async for _ in response.content.iter_any():
                    pass
            wholes.append(time.perf_counter() - began)
        rates.append(answers / (time.perf_counter() - started))

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as group,
    ):
        for number in range(load.streams):
            group.create_task(stream(session, number))
    return Lap(first=median(firsts), whole=median(wholes), rate=sum(rates))


def _kept(home: Path) -> int:
    """How many answers became turns."""
    file = (home / "bot" / "goodbot.db").as_uri()
    with contextlib.closing(sqlite3.connect(f"{file}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM turns WHERE origin = 'captured'").fetchone()[0])


# -- the other two processes


@contextlib.contextmanager
def started(home: Path, cpu: list[float]) -> Iterator[tuple[str, str, str]]:
    """The addresses of the upstream and of the proxy, and a token for the proxy.

    At the end `cpu` has the processor seconds of the proxy's process since it was ready.
    """
    upstream, proxy = _free_ports(2)
    with _child("upstream", str(upstream)), _child("proxy", str(proxy), str(home), str(upstream)):
        token = (home / "token").read_text()
        yield f"http://127.0.0.1:{upstream}", f"http://127.0.0.1:{proxy}", token
    cpu.append(float((home / "cpu").read_text()))


@contextlib.contextmanager
def _child(*words: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.benchmarks.bench_proxy", "--part", *words]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", f"{words} did not start"
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()  # it ends with us, whatever became of us
            process.wait(30)


async def _part(name: str, port: str, *words: str) -> None:
    if name == "upstream":
        await _upstream(int(port))
    else:
        home, upstream = words
        await _proxy(int(port), Path(home), int(upstream))


async def _upstream(port: int) -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, str], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()

    token, last = chunk({"content": "word "}, None), chunk({}, "stop") + b"data: [DONE]\n\n"

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        begun = time.perf_counter()
        for number in range(TOKENS):
            await response.write(token)
            await asyncio.sleep(max(0.0, begun + (number + 1) * PACE - time.perf_counter()))
        await response.write(last)
        return response

    application = web.Application()
    application.router.add_post(_PATH, answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=512).start()
    await _until_told()
    await runner.cleanup()


async def _proxy(port: int, home: Path, upstream: int) -> None:
    token = clients.create(home / "bot", "api", "me")
    api = {"owners": ["me"], "upstream": f"http://127.0.0.1:{upstream}"}
    sections = {"http": HttpConfig(port=port), "connectors": {"api": api}}
    async with open_bot(home, extra=(goodbot_connectors.api,), sections=sections):
        (home / "token").write_text(token)
        began = time.process_time()
        await _until_told()
        (home / "cpu").write_text(str(time.process_time() - began))


async def _until_told() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


if __name__ == "__main__":
    main(sys.argv[1:])
