# SPDX-License-Identifier: Apache-2.0
"""Training: goodbot on both backends beside TRL's KTOTrainer, each in a process of its own.

Interleaved and repeated, medians; one thread each on a CPU. `--cuda` takes the larger shapes and wants
a GPU; `--toy` makes every model tiny, to see that all of it runs. `--minutes` is for a GPU that is there
for so long: each row once, in order of worth, and each is written when it comes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from goodbot.base import priority

from tests.benchmarks.budget import Budget
from tests.benchmarks.shapes import CPU, CUDA, Ratings, make_model, toy
from tests.benchmarks.worth import FIRST, REST, Bench, Row

_WORKER = """
import sys
from goodbot_training.process import worker
sys.exit(worker.main(["train", sys.argv[1]]))
"""
_BACKENDS = {
    "torch": "goodbot_training.backends.torch.trainer:TorchBackend",
    "mlx": "goodbot_training.backends.mlx.trainer:MlxBackend",
}
ROOT = Path(__file__).parents[2]
NAMES = {"torch": "goodbot, torch", "mlx": "goodbot, MLX", "trl": "TRL KTO"}
_COLUMNS = (
    "model",
    "contender",
    "tokens/s",
    "tokens/CPU-s",
    "GFLOP/s",
    "of the matmul rate",
    "peak MB",
    "scoring, CPU-s",
)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    options = asked(arguments)
    if options.minutes is not None:
        within(Budget(minutes=options.minutes, place=options.write), (*FIRST, *REST), options)
        return
    ratings = Ratings(tokens=1000) if options.cuda else Ratings()
    if options.toy:
        ratings = Ratings(count=8, tokens=60)
    shapes = CUDA if options.cuda else CPU
    print("\n## Training: tokens of 32 ratings, one pass, prompt and response\n")
    print("| " + " | ".join(_COLUMNS) + " |\n|" + "---|" * len(_COLUMNS))
    with tempfile.TemporaryDirectory() as place:
        directories: dict[str, Path] = {}
        for name in [n for n in shapes if options.only in (None, n)]:
            directory = directories[name] = Path(place) / name.replace(" ", "-")
            dtype = "bfloat16" if options.cuda and not options.toy else "float32"
            shape = toy(shapes[name]) if options.toy else shapes[name]
            make_model(directory, shape, dtype=dtype, written=written(name))
            for row in [] if options.part == "round" else loop_table(name, directory, ratings, options):
                print(f"| {' | '.join(row)} |", flush=True)
        if options.part != "loop":
            print("\n## A whole round in a fresh process, imports and load included\n")
            print("| model | contender | CPU-s | wall s |\n|---|---|---|---|")
            for name, directory in directories.items():
                if not written(name):
                    continue
                for row in round_table(name, directory, ratings, options):
                    print(f"| {' | '.join(row)} |", flush=True)


def within(budget: Budget, rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Those of the rows that the options ask for, as far as the time goes."""
    wanted = [
        row
        for row in rows
        if options.only in (None, row.model) and row.task["contender"] in options.contenders
    ]
    with tempfile.TemporaryDirectory() as place:
        Bench(Path(place), budget, _child, small=options.toy).table(wanted)


def asked(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_training")
    parser.add_argument("--cuda", action="store_true", help="0.5B, 8B and 30B-A3B on a GPU")
    parser.add_argument("--toy", action="store_true", help="tiny models: does it run?")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="one model, by its name")
    parser.add_argument("--part", choices=("loop", "round"), help="one table only")
    parser.add_argument("--contenders", default="", help="of torch,mlx,trl")
    parser.add_argument("--minutes", type=float, help="a GPU's: the rows that are worth most, each once")
    parser.add_argument("--write", type=Path, help="a directory for them, as they come")
    options = parser.parse_args(arguments)
    every = "torch,trl" if options.cuda else "torch,trl,mlx"
    options.contenders = (options.contenders or every).split(",")
    return options


def loop_table(name: str, directory: Path, ratings: Ratings, options: argparse.Namespace) -> list[list[str]]:
    """A row a contender: the training steps alone."""
    task: dict[str, Any] = {
        "model": str(directory),
        "ratings": asdict(ratings),
        "passes": 1,
        "warm_up": 0,
        "bits": None,
        "recompute": False,
        "tokens_per_forward": 8192,
        "rows": 8,
        "written": written(name),
    }
    if options.cuda:  # a GPU's first steps choose its kernels
        task |= {"passes": 3, "warm_up": 1}
    contenders = _contenders(name, options)
    runs: dict[str, list[dict[str, Any]]] = {one: [] for one in contenders}
    for repeat in range(options.repeats):
        for contender, changes in contenders.items():
            if changes["contender"] == "mlx" and repeat and not options.toy:
                continue  # an order of magnitude slower on a CPU: once says it
            start = time.perf_counter()
            try:
                measures = _child({**task, **changes})
            except MemoryError:
                continue
            runs[contender].append(measures)
            # Told at once: whoever rents a GPU by the minute may have to stop before the table is whole.
            rate, whole = measures["tokens"] / measures["wall"], time.perf_counter() - start
            told = f"{rate:,.0f} tokens/s, {measures['peak']:,.0f} MB ({whole:.0f} s in all)"
            print(f"{name}, {contender}: {told}", file=sys.stderr, flush=True)
    flops = max((run.get("flops", 0.0) for found in runs.values() for run in found), default=0.0)
    rates = {c: median([r["rate"] for r in f]) for c, f in runs.items() if f and "rate" in f[0]}
    rows: list[list[str]] = []
    for contender, found in runs.items():
        if not found:
            rows.append([name, contender, "does not fit into the memory", *[""] * 5])
            continue
        figures = [key for key, value in found[0].items() if not isinstance(value, str)]
        middle = {key: median([run[key] for run in found]) for key in figures}
        seconds = middle["wall"] if options.cuda else middle["cpu"]
        rate = rates.get(contender, rates.get(NAMES["torch"], 0.0))
        rows.append(
            [
                name,
                contender,
                f"{middle['tokens'] / middle['wall']:,.0f}",
                f"{middle['tokens'] / middle['cpu']:,.0f}",
                f"{flops / seconds / 1e9:,.1f}",
                f"{flops / seconds / rate:.0%} of {rate / 1e9:,.0f}" if rate else "",
                f"{middle['peak']:,.0f}",
                f"{middle['scoring']:.2f}" if "scoring" in middle else "",
            ]
        )
    return rows


def written(name: str) -> bool:
    """Whether the model's weights are written to the disk: those of the largest are 61 GB."""
    return not name.startswith("30B")


def _contenders(name: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What to call each, and its part of the task."""
    found: dict[str, dict[str, Any]] = {NAMES[c]: {"contender": c} for c in options.contenders}
    if options.cuda and not name.startswith("0.5B"):
        for contender, changes in tuple(found.items()):
            found[f"{contender}, recomputed"] = {**changes, "recompute": True}
            if changes["contender"] == "trl":
                changes["rows"] = 4
    four_bits = name.startswith("8B") and "torch" in options.contenders
    if options.cuda and four_bits and find_spec("bitsandbytes"):
        found["goodbot, torch, 4 bits, recomputed"] = {
            "contender": "torch",
            "bits": 4,
            "recompute": True,
            "tokens_per_forward": 2048,
        }
    return found


def round_table(name: str, directory: Path, ratings: Ratings, options: argparse.Namespace) -> list[list[str]]:
    """A row a contender: from the start of a process to its end. goodbot's round also judges itself."""
    light = {"max_passes": 1, "gate_anchors": 0}
    every: dict[str, tuple[str, dict[str, Any]]] = {
        "goodbot, as it comes": ("torch", {}),
        "goodbot, one pass, no sampled gate": ("torch", light),
        "TRL KTO, one pass": ("trl", {}),
        "goodbot on MLX, one pass, no sampled gate": ("mlx", light),
    }
    asked = {one: how for one, how in every.items() if how[0] in options.contenders}
    found: dict[str, list[tuple[float, float]]] = {one: [] for one in asked}
    for repeat in range(options.repeats):
        for one, (contender, settings) in asked.items():
            if contender == "mlx" and repeat and not options.toy:
                continue  # as in the other table
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.perf_counter()
            if contender == "trl":
                _child(
                    {
                        "contender": "trl",
                        "model": str(directory),
                        "ratings": asdict(ratings),
                        "passes": 1,
                        "warm_up": 0,
                        "rows": 8,
                        "recompute": options.cuda,
                        "written": True,
                    }
                )
            else:
                _round(directory, ratings, settings, contender)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[one].append((used, wall))
    return [
        [name, one, *(f"{median(values):.1f}" for values in zip(*found[one], strict=True))] for one in asked
    ]


def _round(directory: Path, ratings: Ratings, settings: dict[str, Any], contender: str = "torch") -> None:
    """One job through the real worker."""
    items = ratings.items()
    with tempfile.TemporaryDirectory() as output:
        job = {
            "protocol": 1,
            "run": 1,
            "model": str(directory),
            "parent": None,
            "output": output,
            "seed": 0,
            "settings": settings,
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {},
            "items": items,
            "anchors": [],
        }
        lines = _run(["-c", _WORKER, _BACKENDS[contender]], job)
    if lines[-1]["event"] != "done":
        raise RuntimeError(lines[-1].get("reason", "the worker ended without a word"))


def _child(
    task: dict[str, Any], environ: Mapping[str, str] | None = None, *, seconds: float | None = None
) -> dict[str, Any]:
    return _run(["-m", "tests.benchmarks.contenders"], task, environ, seconds)[-1]


def _run(
    program: list[str],
    task: dict[str, Any],
    environ: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> list[dict[str, Any]]:
    more = {"TOKENIZERS_PARALLELISM": "false", priority.KEEP: "1"}
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        more["OMP_NUM_THREADS"] = "1"
    more |= environ or {}
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run(
        [sys.executable, *program],
        input=json.dumps(task) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, **more, "PYTHONPATH": paths},
        timeout=seconds,
    )
    if ended.returncode and "OutOfMemoryError" in ended.stderr:
        raise MemoryError
    if ended.returncode:
        raise RuntimeError(f"{program[-1]} failed:\n{ended.stderr[-3000:]}")
    return [json.loads(line) for line in ended.stdout.splitlines()]


if __name__ == "__main__":
    main(sys.argv[1:])
