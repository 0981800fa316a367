# SPDX-License-Identifier: Apache-2.0
"""Ten times what the API takes, and six thousand connections at once: what becomes of those who ask.

The daemon is that of `bench_bridge`, on one processor; the load is on another one. It is open: a request (an
answer and its rating, committed before it is answered) leaves at its moment, on a connection that is free or
else on a new one, so that nobody waits for anybody. A time begins at that moment, and it is told how late the
load itself was. Memory and descriptors are read from `/proc`: Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles

from tests.benchmarks.bench_bridge import BODY, Client, request
from tests.benchmarks.bridge_far import CLIENTS, Far, daemon
from tests.benchmarks.open_load import GIVES_UP_SECONDS, load
from tests.benchmarks.table import row

TIMES = 10
BURST = 6000
_PAIR = {**BODY, "feedback": {"score": 1}}


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_overload")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--burst", type=int, default=BURST)
    options = parser.parse_args(arguments)
    asyncio.run(_measure(options.seconds, options.burst))


async def _measure(seconds: float, burst: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        async with daemon(Path(place) / "burst") as far:
            print("\n## A burst of connections that say nothing, and one client beside them\n")
            row(
                "opened",
                "held at most",
                "201 beside",
                "p50 ms",
                "p99",
                "latest",
                "MB before",
                "at most",
                "after",
                head=True,
            )
            row(*await _burst(far, burst))
        async with daemon(Path(place) / "overload") as far:
            rate = await _capacity(far, seconds)
            print(f"\n## Overload: what the API takes is {rate:.0f} rated answers a second\n")
            row(
                "offered",
                "sent",
                "on",
                "201",
                "p50 ms",
                "p99",
                "latest",
                "503",
                "p50 ms",
                "p99",
                "latest",
                "others",
                "the load's own p99",
                "CPU",
                "held at most",
                "MB before",
                "at most",
                "after",
                head=True,
            )
            for times in (1, TIMES):
                for line in await _overload(far, rate * times, seconds):
                    row(f"{times} ×", *line)


async def _capacity(far: Far, seconds: float) -> float:
    callers = [Client(far.port, token) for token in far.tokens[:CLIENTS]]
    for caller in callers:
        await caller.open()
    began = time.perf_counter()

    async def run(caller: Client) -> None:
        while time.perf_counter() - began < seconds:
            await caller.at_once()

    await asyncio.gather(*map(run, callers))
    took = time.perf_counter() - began
    for caller in callers:
        caller.close()
    return sum(len(caller.seconds) for caller in callers) / took


class Watch:
    """The daemon's memory and descriptors, many times a second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.before, self.most, self.after = 0.0, 0.0, 0.0
        """Resident memory, in MB."""
        self.held = 0
        """Descriptors at most, beyond those before."""

    @contextlib.asynccontextmanager
    async def on(self) -> AsyncGenerator[Watch]:
        self.before, idle = self._memory(), self._descriptors()

        async def look() -> None:
            while True:
                self.most = max(self.most, self._memory())
                self.held = max(self.held, self._descriptors() - idle)
                await asyncio.sleep(0.02)

        looking = asyncio.create_task(look())
        try:
            yield self
        finally:
            looking.cancel()
            await asyncio.sleep(2.0)
            self.after = self._memory()

    def memory(self) -> tuple[str, str, str]:
        return f"{self.before:.0f}", f"{self.most:.0f}", f"{self.after:.0f}"

    def _memory(self) -> float:
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._pid}/fd"))


async def _overload(far: Far, rate: float, seconds: float) -> list[list[str]]:
    """So many requests a second for so long, whether or not those before are answered."""
    requests = [request("/v1/turns", token, _PAIR) for token in far.tokens]
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        running = asyncio.get_running_loop().run_in_executor
        await running(process, os.getpid)  # it has started
        async with Watch(far.pid).on() as watch:
            began, cpu = time.perf_counter(), await far.cpu()
            asked = await running(process, load, far.port, requests, rate, seconds)
            used = (await far.cpu() - cpu) / (time.perf_counter() - began)
    others = collections.Counter(one.told for one in asked if one.told not in ("201", "503"))
    broken = ", ".join(f"{count:,} × {what}" for what, count in others.most_common()) or "none"
    late = _times([one.left - one.due for one in asked])[2]
    lines: list[list[str]] = []
    for what, kept in (("a connection that is kept", True), ("a new one", False)):
        of = [one for one in asked if one.kept is kept]
        took = [_times([one.over - one.due for one in of if one.told == status]) for status in ("201", "503")]
        lines.append(
            [
                f"{len(asked):,}",
                what,
                *took[0],
                *took[1],
                broken,
                late,
                f"{used:.2f}",
                f"{watch.held}",
                *watch.memory(),
            ]
        )
    return lines


def _times(took: Sequence[float]) -> list[str]:
    """How many, and their median, 99th percentile and longest in milliseconds."""
    if len(took) < 2:
        return [f"{len(took)}", "", "", ""]
    found = (median(took), quantiles(took, n=100)[98], max(took))
    return [f"{len(took):,}", *(f"{1e3 * one:,.0f}" for one in found)]


async def _burst(far: Far, count: int) -> list[str]:
    """So many sockets in one moment, each open until it is closed; one client asks meanwhile."""
    told: list[float] = []
    ended = asyncio.Event()

    async def silent() -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", far.port)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GIVES_UP_SECONDS):
                    await reader.read()
            writer.close()

    async def pairs() -> None:
        while not ended.is_set():
            began = time.perf_counter()
            caller = Client(far.port, far.tokens[0])
            try:
                await caller.open()
                status, _ = await caller.ask("/v1/turns", _PAIR)
            except (OSError, EOFError):
                continue
            finally:
                caller.close()
            if status == 201:
                told.append(time.perf_counter() - began)

    async with Watch(far.pid).on() as watch:
        asking = asyncio.create_task(pairs())
        await asyncio.gather(*(silent() for _ in range(count)))
        ended.set()
        await asking
    return [f"{count:,}", f"{watch.held}", *_times(told), *watch.memory()]


if __name__ == "__main__":
    main(sys.argv[1:])
