# SPDX-License-Identifier: Apache-2.0
"""What encryption costs: a rating with it and without, in turns on the same disk, and the ratio of both."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from goodbot.config import Grants
from goodbot.conversation.ingest import Dispatcher
from goodbot.store import Store, training_pool

from tests.benchmarks.bench_store import _answer, _rating
from tests.benchmarks.table import row
from tests.core import dispatching
from tests.encryption import turned_on

ROUNDS = 200
_GRANTS = {"bench": Grants(owners=("1",))}
_POOL = training_pool.Pool(scope="default", model="m", owners=("bench:1",))


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_encryption")
    parser.parse_args(arguments)
    asyncio.run(_measure())


async def _measure() -> None:
    print("\n## A rating, stored durably, with encryption and without\n")
    times: dict[str, list[tuple[float, float]]] = {"in clear": [], "encrypted": []}
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dispatchers: dict[str, Dispatcher] = {}
        for name in times:
            home = folder / name
            home.mkdir()
            if name == "encrypted":
                turned_on(home, folder / "key")
            store = await Store.open(home / "goodbot.db")
            stack.push_async_callback(store.close)
            await _answer(store, "asked")
            dispatchers[name] = dispatching.dispatcher(store, _GRANTS, _POOL)
        for number in range(ROUNDS):
            for name, dispatcher in dispatchers.items():
                began, cpu = time.perf_counter(), time.process_time()
                await dispatcher.submit([_rating("asked", f"rating-{number}", number, 1.0)], "bench")
                times[name].append((time.perf_counter() - began, time.process_time() - cpu))
    row("a rating", "ms", "processor ms", head=True)
    middle = {name: [median(one) for one in zip(*found, strict=True)] for name, found in times.items()}
    for name, (wall, cpu) in middle.items():
        row(name, f"{1e3 * wall:.2f}", f"{1e3 * cpu:.2f}")
    clear, sealed = middle["in clear"], middle["encrypted"]
    row("ratio", *(f"{second / first:.2f}" for first, second in zip(clear, sealed, strict=True)))


if __name__ == "__main__":
    main()
