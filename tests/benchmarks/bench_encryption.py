# SPDX-License-Identifier: Apache-2.0
"""What encryption costs: the same work with it and without, in turns on one disk, and the ratio of both."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from goodbot.api.adapters.manifest import CONFIG, WEIGHTS, AdapterManifest, publish
from goodbot.cli.backup.make import make
from goodbot.config import Grants, clear
from goodbot.conversation.ingest import Dispatcher
from goodbot.learning.adapters import copies
from goodbot.store import Store, adapters, training_pool

from tests.benchmarks.bench_store import _answer, _rating
from tests.benchmarks.table import row
from tests.core import dispatching
from tests.encryption import turned_on

RATINGS, TIMES = 200, 20
RANK, WIDTH = 32, 32_768
"""Of the one matrix that the adapter is on: 8 MB."""
_GRANTS = {"bench": Grants(owners=("1",))}
_POOL = training_pool.Pool(scope="default", model="m", owners=("bench:1",))
Times = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One goodbot's state: its directory, its database, and one version of 8 MB."""

    home: Path
    version: adapters.AdapterRow
    store: Store
    dispatcher: Dispatcher


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_encryption")
    parser.parse_args(arguments)
    asyncio.run(_measure())


async def _measure() -> None:
    print("\n## With encryption and without: medians, and the ratio of both\n")
    heads = [f"{kind}{what}" for kind in ("", "processor: ") for what in ("in clear", "encrypted", "ratio")]
    row("work, in ms", *heads, head=True)
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = [await _side(stack, folder, on=on) for on in (False, True)]
        for side in sides:
            stack.callback(clear.leave, side.home)
        works: Mapping[str, tuple[int, Callable[[_Side, int], Awaitable[None]]]] = {
            "a rating, stored durably": (RATINGS, _rate),
            "a start: the database opened": (TIMES, _start),
            "a backup": (TIMES, _back_up),
            "an adapter of 8 MB, ready for a child": (TIMES, _load),
            "the same once more": (TIMES, _load_again),
        }
        for name, (count, work) in works.items():
            found: list[Times] = [[], []]
            for number in range(count):
                for side, times in zip(sides, found, strict=True):
                    began, cpu = time.perf_counter(), time.process_time()
                    await work(side, number)
                    times.append((time.perf_counter() - began, time.process_time() - cpu))
            _tell(name, *found)


def _tell(name: str, plain: Times, sealed: Times) -> None:
    columns: list[str] = []
    for kind in range(2):
        first, second = (1e3 * median(one[kind] for one in times) for times in (plain, sealed))
        columns += [f"{first:.2f}", f"{second:.2f}", f"{second / first:.2f}"]
    row(name, *columns)


async def _side(stack: contextlib.AsyncExitStack, folder: Path, *, on: bool) -> _Side:
    home = folder / ("encrypted" if on else "clear")
    home.mkdir()
    if on:
        turned_on(home, folder / "key")
    version = _published(folder / "staging", home / "adapters")
    store = await Store.open(home / "goodbot.db")
    stack.push_async_callback(store.close)
    await _answer(store, "asked")
    await store.write(lambda db: adapters.add(db, version, "default"))
    dispatcher = dispatching.dispatcher(store, _GRANTS, _POOL)
    return _Side(home=home, version=version, store=store, dispatcher=dispatcher)


def _published(staging: Path, root: Path) -> adapters.AdapterRow:
    """A version of random numbers."""
    staging.mkdir()
    size = 4 * RANK * WIDTH
    header = {
        f"base_model.model.base.lora_{half}.weight": {
            "dtype": "F32",
            "shape": shape,
            "data_offsets": [size * number, size * (number + 1)],
        }
        for number, (half, shape) in enumerate({"A": [RANK, WIDTH], "B": [WIDTH, RANK]}.items())
    }
    text = json.dumps(header).encode()
    (staging / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + os.urandom(2 * size))
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["base"]}
    (staging / CONFIG).write_text(json.dumps(config))
    given = AdapterManifest(version=1, parent=0, run=None, model="m", files={})
    directory, known = publish(staging, root, given)
    return adapters.AdapterRow(
        version=1,
        parent=0,
        run=None,
        directory=directory.name,
        sha256=known.files[WEIGHTS],
        model="m",
        tainted="",
        baseline={"mean": 0.0, "weight": 0.0},
        metrics={},
        created_at=0.0,
    )


async def _rate(side: _Side, number: int) -> None:
    await side.dispatcher.submit([_rating("asked", f"rating-{number}", number, 1.0)], "bench")


async def _start(side: _Side, number: int) -> None:
    """A second connection to the file is what a start opens; the key is known already."""
    del number
    await (await Store.open(side.home / "goodbot.db")).close()


async def _back_up(side: _Side, number: int) -> None:
    target = side.home.parent / f"{side.home.name}-{number}.tar"
    await asyncio.to_thread(make, side.home, target, {}, now=1.8e9)
    target.unlink()


async def _load(side: _Side, number: int) -> None:
    """As after a start: there is no copy in clear yet."""
    clear.leave(side.home)
    await _load_again(side, number)


async def _load_again(side: _Side, number: int) -> None:
    del number
    version = side.version
    await asyncio.to_thread(copies.verified, side.home / "adapters", version.directory, version.sha256)


if __name__ == "__main__":
    main()
