# SPDX-License-Identifier: Apache-2.0
"""Serving: swaps under load, throughput beside mlx_lm.server and what libraries write with, waiting times,
many adapters at once.

All on one model of 4 million random weights and on processors; with `--cuda` on one of half a billion
and on a GPU, torch alone. Contenders take turns, medians; on a machine that others use, the ratios of
processor seconds say more than those of seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from goodbot.api.backend import BackendSpec
from goodbot_training.backends.mlx import register_backend as mlx
from goodbot_training.backends.torch import register_backend as torch

from tests.benchmarks import serving_adapters
from tests.benchmarks.serving_contenders import Contender, Embedded, Generate, MlxServer, make
from tests.benchmarks.shapes import CUDA
from tests.benchmarks.table import row
from tests.core.inference.servers import tiny

CHATS = (1, 8, 32)
TOKENS = 64
_SWAP_CHATS = 20
_BLOCK = 25
"""Swaps; then the same chats without any for a third of that time: no machine is the same for an hour."""
_WORDS = ("salt", "why", "river", "a", "blue", "stone", "when", "north", "tell", "bread", "how")


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_serving")
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4, help="questions of each chat")
    parser.add_argument("--part", choices=("swaps", "throughput", "waiting", "adapters"))
    parser.add_argument("--backend", choices=("torch", "mlx"), help="of all but throughput; else both")
    parser.add_argument("--cuda", action="store_true", help="a model of 0.5B on a GPU; torch alone")
    options = parser.parse_args(arguments)
    if options.cuda:
        options.backend = "torch"
    asyncio.run(_print(options))


async def _print(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        model = (
            make(home / "model", CUDA["0.5B Qwen2"], words=32_000) if options.cuda else make(home / "model")
        )
        specs = [spec for spec in (torch(), mlx()) if options.backend in (None, spec.name)]
        if options.part in (None, "swaps"):
            print(f"\n## {options.swaps} swaps under {_SWAP_CHATS} chats\n")
            row(
                "backend",
                "swaps",
                "answers",
                "failed",
                "p50 s (without)",
                "p99 s (without)",
                "added at p99, ms",
                "a swap, ms",
                head=True,
            )
            for spec in specs:
                row(*await swaps(spec, model, home / spec.name, options.swaps, _SWAP_CHATS))
        if options.part in (None, "throughput"):
            await _throughput(home, model, options)
        if options.part in (None, "waiting"):
            print("\n## Waiting: medians, ms\n")
            row(
                "backend",
                "first piece",
                "its framework's `generate` of one token",
                "ratio",
                "new adapter to its first piece",
                head=True,
            )
            for spec in specs:
                row(*await waiting(spec, model, home / f"new-{spec.name}", options.repeats))
        if options.part in (None, "adapters"):
            print(f"\n## Many adapters: {serving_adapters.CHATS} chats\n")
            row(*serving_adapters.HEAD, head=True)
            gc.freeze()  # as the process that answers does: else a collection goes through all that is here
            for spec in specs:
                for line in serving_adapters.table(spec.name, model, options.repeats, options.rounds):
                    row(*line)


# -- swaps


@dataclass
class Tally:
    """What the chats have seen."""

    seconds: list[float] = field(default_factory=list[float])
    failed: int = 0
    wrong: int = 0
    """Answers that no version which was active meanwhile has signed."""

    @property
    def p99(self) -> float:
        return quantiles(self.seconds, n=100)[98]


async def swaps(spec: BackendSpec, model: Path, home: Path, count: int, chats: int) -> list[str]:
    """A row: `count` swaps while `chats` chats go on without a pause, and the same chats between them."""
    directories = [tiny.adapter(home / str(seed), seed, 1.0, of=model) for seed in (1, 2)]
    embedded = Embedded(spec, model)
    server = embedded.server
    await embedded.start(home)
    active = [0]
    stop = asyncio.Event()

    async def chat(number: int, tally: Tally) -> None:
        for turn in itertools.count():
            if stop.is_set():
                return
            before = len(active) - 1
            try:
                answer, _, seconds = await embedded.whole(turn, question(number, turn), TOKENS)
            except Exception:  # each kind is a failed request
                tally.failed += 1
                continue
            tally.seconds.append(seconds)
            tally.wrong += answer.version not in active[before:]

    async def under(tally: Tally, work: float | range) -> list[float]:
        stop.clear()
        running = [asyncio.create_task(chat(number, tally)) for number in range(chats)]
        took: list[float] = []
        if isinstance(work, float):
            await asyncio.sleep(work)
        else:
            for version in work:
                began = time.perf_counter()
                await server.load(version, directories[version % 2])
                await embedded.whole(0, "Hello?", 4, version)  # the probe
                active.append(version)  # from here on it may sign
                await server.activate(version)
                took.append(time.perf_counter() - began)
                if version % 100 == 0:
                    print(f"{version} of {count} swaps", file=sys.stderr, flush=True)
                if version > 1:  # the next one comes when nobody is on the last any more
                    await server.unload(version - 1)
        stop.set()
        await asyncio.gather(*running)
        return took

    try:
        await under(Tally(), 0.5)  # warm
        swapped, still, took = Tally(), Tally(), list[float]()
        for version in range(1, count + 1, _BLOCK):
            began = time.perf_counter()
            took += await under(swapped, range(version, min(version + _BLOCK, count + 1)))
            await under(still, (time.perf_counter() - began) / 3)
    finally:
        await embedded.stop()
    bad = swapped.failed + still.failed + swapped.wrong + still.wrong
    added = 1000 * (swapped.p99 - still.p99)
    return [
        spec.name,
        str(count),
        str(len(swapped.seconds)),
        str(bad),
        f"{median(swapped.seconds):.2f} ({median(still.seconds):.2f})",
        f"{swapped.p99:.2f} ({still.p99:.2f})",
        f"{added:.0f}",
        f"{1000 * median(took):.0f}",
    ]


# -- throughput


async def _throughput(home: Path, model: Path, options: argparse.Namespace) -> None:
    contenders = {
        "goodbot, torch": Embedded(torch(), model),
        "goodbot, MLX": Embedded(mlx(), model),
        "mlx_lm.server": MlxServer(model),
        "generate, one by one": Generate(model),
        "generate, one padded batch": Generate(model, together=True),
        "transformers' continuous batching": Generate(model, batching=True),
        "mlx-lm's generate, one by one": Generate(model, mlx=True),
        "mlx-lm's BatchGenerator": Generate(model, mlx=True, batching=True),
    }
    if options.cuda:
        contenders = {n: one for n, one in contenders.items() if "mlx" not in n.lower()}
    print(f"\n## Throughput: answers of {TOKENS} tokens\n")
    row("chats", "contender", "tokens/s", "tokens/CPU-s", "torch is faster by", "MLX is faster by", head=True)
    try:
        for contender in contenders.values():
            await contender.start(home)
        for chats in CHATS:
            for line in await throughput(contenders, chats, options.repeats, options.rounds):
                row(*line)
    finally:
        for contender in contenders.values():
            await contender.stop()


async def throughput(
    contenders: dict[str, Contender], chats: int, repeats: int, rounds: int, tokens: int = TOKENS
) -> list[list[str]]:
    """A row a contender; they take turns."""
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats + 1):
        asked = [question(chat, 100 * repeat + turn) for turn in range(rounds) for chat in range(chats)]
        for name, contender in contenders.items():
            with contender.cost() as cost:
                written = await contender.answer(asked, chats, tokens)
            if repeat:  # the first is to warm up
                wall[name].append(written / cost["wall"])
                cpu[name].append(written / max(cost["cpu"], 1e-3))
    ours = [name for name in contenders if name.startswith("goodbot")]

    def faster(mine: str, name: str) -> str:
        one, other = (median(cpu[it]) for it in (mine, name))
        quick, slow = (median(wall[it]) for it in (mine, name))
        return f"{quick / slow:.2f} ({one / other:.2f} by CPU)"

    return [
        [
            str(chats),
            name,
            f"{median(wall[name]):,.0f}",
            f"{median(cpu[name]):,.0f}",
            *("" if name in ours else faster(mine, name) for mine in ours),
        ]
        for name in contenders
    ]


# -- waiting


async def waiting(spec: BackendSpec, model: Path, home: Path, repeats: int) -> list[str]:
    """A row: how long until the first piece, and until the first piece of a new adapter."""
    embedded, plain = Embedded(spec, model), Generate(model, mlx=spec.name == "mlx")
    await embedded.start(home)
    await plain.start(home)
    first: list[float] = []
    theirs: list[float] = []
    fresh: list[float] = []
    try:
        await embedded.whole(0, "Hello?", 4)
        for turn in range(10 * repeats):
            asked = question(0, turn)
            first.append((await embedded.whole(turn, asked, 8))[1])
            theirs.append((await plain.told([asked], 1, 1))["first"])
        for version in range(1, repeats + 1):
            directory = tiny.adapter(home / str(version), version, of=model)
            began = time.perf_counter()
            await embedded.server.load(version, directory)
            await embedded.whole(0, "Hello?", 4, version)  # the probe
            await embedded.server.activate(version)
            before = time.perf_counter() - began
            answer, piece, _ = await embedded.whole(version, question(1, version), 8)
            if answer.version != version:
                raise RuntimeError(f"v{answer.version} answered, and v{version} is active")
            fresh.append(before + piece)
    finally:
        await embedded.stop()
        await plain.stop()
    one, other, new = (1000 * median(times) for times in (first, theirs, fresh))
    return [spec.name, f"{one:.1f}", f"{other:.1f}", f"{one / other:.2f}", f"{new:.0f}"]


def question(chat: int, turn: int) -> str:
    """Words, of a length that differs."""
    return " ".join(_WORDS[(chat + word * (turn + 1)) % 11] for word in range(3 + (7 * chat + turn) % 9))


if __name__ == "__main__":
    main(sys.argv[1:])
