# SPDX-License-Identifier: Apache-2.0
"""The bridge: an answer reported and rated by HTTP, both durable before they are answered.

The daemon is a process of its own, on one processor where the system lets us say so; 64 clients, each
with a connection and a token, send pair after pair. One of them is the owner, the others are raters who
share what they say. A processor's seconds are those of the whole daemon, its database's thread among them.

Two lines tell what nobody who uses these parts gets below: two requests of aiohttp that do nothing, and
two that do in goodbot's store what a pair does there, each committed, and nothing else at all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.benchmarks.bridge_far import CLIENTS, Far, daemon
from tests.benchmarks.table import row

HALF_OPEN = 1000
OPEN_TURNS = 100_000
BODY = {
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
    parser.add_argument("--profile", default="", help="write the daemon's cProfile there")
    options = parser.parse_args(arguments)
    print("\n## The bridge\n")
    row("what", "pairs/s", "CPU ms a pair", "p50 ms", "p99 ms", head=True)
    for line in asyncio.run(measure(options.seconds, options.open_turns, options.profile)):
        row(*line)


async def measure(seconds: float, open_turns: int, profile: str = "") -> list[list[str]]:
    """The lines of the table."""
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for what in ("aiohttp alone", "aiohttp and the store alone"):
            async with daemon(home / what, what=what) as far:
                lines.append(await pairs(far, CLIENTS, seconds, f"{what}, {CLIENTS} clients"))
        async with daemon(home, profile) as far:
            lines.append(await pairs(far, CLIENTS, seconds, f"{CLIENTS} clients"))
            lines.append(await pairs(far, CLIENTS, seconds, "the same in one request", at_once=True))
            lines.append(await pairs(far, 1, seconds / 4, "one client"))
            lines.append(await half_open(far, HALF_OPEN, seconds / 4))
            await far.fill(open_turns)
            lines.append(await pairs(far, CLIENTS, seconds, f"{open_turns} open turns"))
    return lines


# -- the clients


def request(path: str, token: str, body: dict[str, Any]) -> bytes:
    """As it is sent."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self.seconds: list[float] = []
        self.is_open = False
        """Whether it can be asked; false too once the server has said that it closes."""

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.is_open = True

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._writer.close()

    @property
    def is_over(self) -> bool:
        """Whether the server has closed it."""
        return self._reader.at_eof()

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, answer = await self.ask(path, body)
        assert status // 100 == 2, answer
        return answer

    async def ask(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self._writer.write(request(path, self._token, body))
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = int(said.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        answer = json.loads(await self._reader.readexactly(length))
        if b"connection: close" in said.lower():
            self.close()
        return int(said[9:12]), answer

    async def pair(self) -> None:
        began = time.perf_counter()
        kept = await self.post("/v1/turns", BODY)
        await self.post("/v1/feedback", {"turn": kept["turn"], "score": 1})
        self.seconds.append(time.perf_counter() - began)

    async def at_once(self) -> None:
        began = time.perf_counter()
        await self.post("/v1/turns", {**BODY, "feedback": {"score": 1}})
        self.seconds.append(time.perf_counter() - began)


async def pairs(far: Far, count: int, seconds: float, what: str, *, at_once: bool = False) -> list[str]:
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
        what,
        f"{len(told) / took:.0f}",
        f"{1e3 * used / len(told):.2f}",
        f"{1e3 * median(told):.1f}",
        f"{1e3 * p99:.1f}",
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
