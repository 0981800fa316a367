# SPDX-License-Identifier: Apache-2.0
"""`make bench-gpu`: all that a GPU is wanted for, in one call of ten minutes; rows are written as they come.

First what the goals ask of a training, then answers, then the rest. `--toy` runs the same on a processor
with tiny models. Nothing is fetched: PyTorch and goodbot's extra `bench` must be there (TRL, bitsandbytes
and flash-attn where they are to have a row).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.benchmarks import bench_serving, bench_training
from tests.benchmarks.budget import Budget
from tests.benchmarks.worth import FIRST, REST, Bench

_PACKAGES = ("torch", "transformers", "peft", "trl", "bitsandbytes", "flash-attn", "triton")
_ANSWERS = 45.0
"""Seconds that each table of answers has, at most: what is left after them is for the rest."""


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_gpu")
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--write", type=Path, default=Path("build/bench-gpu"))
    parser.add_argument("--toy", action="store_true", help="tiny models: does it run?")
    options = parser.parse_args(arguments)
    budget = Budget(minutes=options.minutes, place=options.write)
    budget.head("On what", "what", "version")
    for name, found in machine():
        budget.row(name, found)
    toys = ["--toy"] if options.toy else []
    with tempfile.TemporaryDirectory() as place:
        training = Bench(Path(place), budget, bench_training._child, small=options.toy)
        training.table(FIRST)
        asked = bench_serving.asked(["--cuda", *toys, "--minutes", str(options.minutes)])
        answers = bench_serving.Bench(Path(place), budget, asked, _ANSWERS)
        for part in (answers.throughput, answers.exact, answers.waiting, answers.swaps):
            try:
                asyncio.run(part())
            except Exception as error:  # the others are still worth their minutes
                budget.row(part.__name__, f"failed: {' '.join(str(error).split())[-200:]}")
        training.table(REST)


def machine() -> list[tuple[str, str]]:
    """The GPU, and the packages that compute."""
    import torch

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "none: a processor"
    found = [("GPU", card), ("CUDA", str(torch.version.cuda))]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed"))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
