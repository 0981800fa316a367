# SPDX-License-Identifier: Apache-2.0
"""Serving: swaps under load, throughput beside mlx_lm.server and what libraries write with, waiting times,
many adapters at once.

All on one model of 4 million random weights and on processors; with `--cuda` on one of half a billion
and on a GPU, torch alone; with `--minutes` what is worth most comes first. Contenders take turns, medians;
on a machine that others use, the ratios of processor seconds say more than those of seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from goodbot.api.backend import BackendSpec
from goodbot.api.server import BASE
from goodbot_training.backends.mlx import register_backend as mlx
from goodbot_training.backends.torch import register_backend as torch

from tests.benchmarks import serving_adapters
from tests.benchmarks.budget import Budget
from tests.benchmarks.serving_contenders import Contender, Embedded, Generate, MlxServer, make
from tests.benchmarks.shapes import CPU, CUDA, toy
from tests.core.inference.servers import tiny

CHATS = (1, 8, 32)
TOKENS = 64
_PARTS = ("swaps", "throughput", "waiting", "exact", "adapters")
_SWAP_CHATS = 20
_BLOCK = 25
"""Swaps; then the same chats without any for a third of that time: no machine is the same for an hour."""
_WORDS = ("salt", "why", "river", "a", "blue", "stone", "when", "north", "tell", "bread", "how")


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    options = asked(arguments)
    asyncio.run(within(Budget(minutes=options.minutes, place=options.write), options))


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_serving")
    parser.add_argument("--swaps", type=int, help="by default 1000; 100 with --minutes")
    parser.add_argument("--repeats", type=int, help="by default 3; 1 with --minutes")
    parser.add_argument("--rounds", type=int, default=4, help="questions of each chat")
    parser.add_argument("--part", choices=_PARTS)
    parser.add_argument("--backend", choices=("torch", "mlx"), help="of all but throughput; else both")
    parser.add_argument("--cuda", action="store_true", help="a model of 0.5B on a GPU; torch alone")
    parser.add_argument("--toy", action="store_true", help="a tiny model and short answers: does it run?")
    parser.add_argument("--minutes", type=float, help="so long it may take: what is worth most comes first")
    parser.add_argument("--write", type=Path, help="a directory for the rows, as they come")
    options = parser.parse_args(arguments)
    short = options.minutes is not None
    options.swaps = options.swaps or (100 if short else 1000)
    options.repeats = options.repeats or (1 if short else 3)
    options.tokens = 6 if options.toy else TOKENS
    if options.cuda:
        options.backend = "torch"
    return options


async def within(budget: Budget, options: argparse.Namespace, most: float = math.inf) -> None:
    """The parts that the options ask for, as far as the time goes; `most` seconds for each."""
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place), budget, options, most)
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            "swaps": bench.swaps,
            "throughput": bench.throughput,
            "waiting": bench.waiting,
            "exact": bench.exact,
            "adapters": bench.adapters,
        }
        order = ("throughput", "exact", "waiting", "swaps") if options.minutes is not None else _PARTS
        for part in order:
            if options.part in (None, part):
                await parts[part]()


class Bench:
    """The tables of one model; each row comes under the clock, if there is one."""

    def __init__(self, home: Path, budget: Budget, options: argparse.Namespace, most: float) -> None:
        shape, words = (CUDA["0.5B Qwen2"], 32_000) if options.cuda else (CPU["4M Llama"], 2048)
        if options.toy:
            shape, words = toy(shape), 512
        self._home, self._budget, self._options, self._most = home, budget, options, most
        self._model = make(home / "model", shape, words=words)
        self._specs = [spec for spec in (torch(), mlx()) if options.backend in (None, spec.name)]

    async def swaps(self) -> None:
        """Swaps under chats."""
        count = self._options.swaps
        self._budget.head(
            f"{count} swaps under {_SWAP_CHATS} chats",
            *("backend", "swaps", "answers", "failed", "p50 s (without)", "p99 s (without)"),
            *("added at p99, ms", "a swap, ms"),
        )
        for spec in self._specs:
            given = (spec, self._model, self._home / spec.name, count, _SWAP_CHATS, self._options.tokens)
            await self._rows(spec.name, _one(swaps(*given)))

    async def throughput(self) -> None:
        """Tokens a second, beside what the libraries write with."""
        tokens, chats = self._options.tokens, CHATS
        self._budget.head(
            f"Throughput: answers of {tokens} tokens",
            *("chats", "contender", "tokens/s", "tokens/CPU-s", "torch is faster by", "MLX is faster by"),
        )
        contenders = self._contenders()
        if self._options.minutes is not None:
            chats = (8, 1, 32)
            del contenders["generate, one by one"]  # which takes all of them
        try:
            for contender in contenders.values():
                await contender.start(self._home)
            for number in chats:
                rows = throughput(contenders, number, self._options.repeats, self._options.rounds, tokens)
                if not await self._rows(str(number), rows):
                    break  # what one of them still answers would be taken for what it is asked next
        finally:
            for contender in contenders.values():
                await contender.stop()

    def _contenders(self) -> dict[str, Contender]:
        model = self._model
        every: dict[str, Contender] = {
            "goodbot, torch": Embedded(torch(), model),
            "goodbot, MLX": Embedded(mlx(), model),
            "mlx_lm.server": MlxServer(model),
            "generate, one by one": Generate(model),
            "generate, one padded batch": Generate(model, together=True),
            "transformers' continuous batching": Generate(model, batching=True),
            "mlx-lm's generate, one by one": Generate(model, mlx=True),
            "mlx-lm's BatchGenerator": Generate(model, mlx=True, batching=True),
        }
        return {
            name: one for name, one in every.items() if not (self._options.cuda and "mlx" in name.lower())
        }

    async def waiting(self) -> None:
        """How long until something comes."""
        self._budget.head(
            "Waiting: medians, ms",
            *("backend", "first piece", "its framework's `generate` of one token", "ratio"),
            "new adapter to its first piece",
        )
        for spec in self._specs:
            given = (spec, self._model, self._home / f"new-{spec.name}", self._options.repeats)
            await self._rows(spec.name, _one(waiting(*given)))

    async def adapters(self) -> None:
        """Rows of many adapters, beside those of one."""
        self._budget.head(f"Many adapters: {serving_adapters.CHATS} chats", *serving_adapters.HEAD)
        gc.freeze()  # as the process that answers does: else a collection goes through all that is here
        for spec in self._specs:
            given = (spec.name, self._model, self._options.repeats, self._options.rounds)
            for line in serving_adapters.table(*given):
                self._budget.row(*line)

    async def exact(self) -> None:
        """Whether it computes what it should."""
        title = "How far log-probs of first tokens are from fp32 on this processor, nats at most"
        self._budget.head(title, "backend", "the base", "with an adapter")
        for spec in self._specs:
            await self._rows(spec.name, _one(exact(spec, self._model, self._home / f"exact-{spec.name}")))

    async def _rows(self, name: str, found: Awaitable[list[list[str]]]) -> bool:
        """Rows, or one that says why there are none."""
        left = min(self._most, self._budget.left)
        try:
            async with asyncio.timeout(None if math.isinf(left) else max(0.0, left)):
                for row in await found:
                    self._budget.row(*row)
        except TimeoutError:
            self._budget.row(name, f"did not end in {max(0.0, left):.0f} s")
            return False
        return True


async def _one(row: Awaitable[list[str]]) -> list[list[str]]:
    return [await row]


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


async def swaps(
    spec: BackendSpec, model: Path, home: Path, count: int, chats: int, tokens: int = TOKENS
) -> list[str]:
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
                answer, _, seconds = await embedded.whole(turn, question(number, turn), tokens)
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


# -- exact


async def exact(spec: BackendSpec, model: Path, home: Path) -> list[str]:
    """A row: the same questions to a sampler here and to one that sees no GPU, by the base and an adapter."""
    directory = tiny.adapter(home / "adapter", 1, 1.0, of=model)
    told = [await _told(Embedded(spec, model, alone), directory, home) for alone in (False, True)]
    apart = [
        max(
            abs(one[text] - other[text])
            for one, other in zip(*(row[version] for row in told), strict=True)
            for text in one.keys() & other.keys()
        )
        for version in (BASE, 1)
    ]
    return [spec.name, *(f"{one:.1e}" for one in apart)]


async def _told(embedded: Embedded, directory: Path, home: Path) -> dict[int, list[Mapping[str, float]]]:
    """The likeliest first tokens of some answers, by version."""
    await embedded.start(home)
    try:
        await embedded.server.load(1, directory)
        asked = [[{"role": "user", "content": question(chat, 3)}] for chat in range(4)]
        return {
            version: [await embedded.server.first_tokens(one, version=version, top=20) for one in asked]
            for version in (BASE, 1)
        }
    finally:
        await embedded.stop()


def question(chat: int, turn: int) -> str:
    """Words, of a length that differs."""
    return " ".join(_WORDS[(chat + word * (turn + 1)) % 11] for word in range(3 + (7 * chat + turn) % 9))


if __name__ == "__main__":
    main(sys.argv[1:])
