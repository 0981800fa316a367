# SPDX-License-Identifier: Apache-2.0
"""The training rows of a GPU that is there for minutes: those first that a goal asks for.

Each runs once, in a process of its own, and none longer than is left. Beside a row's speed stands how far
its loss and gradient are from fp32 on this processor (`exact`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.benchmarks.budget import Budget
from tests.benchmarks.exact import shallow
from tests.benchmarks.shapes import CUDA, Ratings, make_model, toy

_SMALL, _MIDDLE, _LARGE = CUDA
LEAST = 45.0
"""Seconds below which no row is begun: to import and to make the weights takes most of them."""
MOST = 150.0
"""Seconds after which one is stopped: TRL's at 8B had not ended then."""
TITLE = "Training on a GPU, in order of worth: 32 ratings of 1,000 tokens, one pass"
COLUMNS = (
    *("model", "contender", "tokens/s", "beside goodbot", "TFLOP/s", "of the matmul rate", "peak GB"),
    *("attention", "loss off", "gradient off", "seconds in all"),
)

Child = Callable[..., dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is run, and which goal asks for it."""

    model: str
    name: str
    task: Mapping[str, Any] = field(default_factory=dict[str, Any])
    goal: str = ""
    needs: str = ""
    """A package."""


def _torch(**task: Any) -> dict[str, Any]:
    return {"contender": "torch", **task}


FIRST = (
    Row(model=_MIDDLE, name="goodbot", task=_torch(), goal="45 % of the matmul rate"),
    Row(
        model=_MIDDLE,
        name="goodbot, recomputed, 2,048 at once",
        task=_torch(recompute=True, tokens_per_forward=2048),
        goal="20 GB",
    ),
    Row(
        model=_MIDDLE,
        name="goodbot, 4 bits, recomputed, 2,048 at once",
        task=_torch(bits=4, recompute=True, tokens_per_forward=2048, written=True),
        goal="9 GB",
        needs="bitsandbytes",
    ),
    Row(model=_MIDDLE, name="TRL KTO, 4 rows", task={"contender": "trl", "rows": 4}, needs="trl"),
    Row(model=_SMALL, name="goodbot, 32,768 at once", task=_torch(tokens_per_forward=32768), goal="2 × TRL"),
    Row(model=_SMALL, name="TRL KTO, 8 rows", task={"contender": "trl"}, needs="trl"),
    Row(model=_MIDDLE, name="goodbot, compiled", task=_torch(compiled=True)),
)
"""What a goal asks for."""
REST = (
    Row(
        model=_MIDDLE,
        name="goodbot, flash_attention_2",
        task=_torch(attention="flash_attention_2"),
        needs="flash_attn",
    ),
    Row(
        model=_SMALL,
        name="goodbot, 32,768 at once, compiled",
        task=_torch(tokens_per_forward=32768, compiled=True),
    ),
    Row(model=_SMALL, name="goodbot", task=_torch()),
    Row(model=_MIDDLE, name="goodbot, recomputed", task=_torch(recompute=True)),
    Row(model=_MIDDLE, name="TRL KTO, recomputed", task={"contender": "trl", "recompute": True}, needs="trl"),
    Row(model=_LARGE, name="goodbot, recomputed", task=_torch(recompute=True)),
)
"""What is good to know beside it."""


class Bench:
    """Runs rows in a directory, each model of which is made when its first row comes."""

    def __init__(self, place: Path, budget: Budget, run: Child, *, small: bool = False) -> None:
        """`run` takes a task, an environment and how many seconds it may take; `small`: toys, for tests."""
        self._place, self._budget, self._run, self._small = place, budget, run, small
        self._ratings = Ratings(count=8, tokens=60) if small else Ratings(tokens=1000)
        self._best: dict[str, float] = {}
        """The most tokens a second of goodbot's rows, by model."""
        self._references: dict[str, str] = {}

    def table(self, rows: Sequence[Row]) -> None:
        """Print them as they come; one that fails says so in its row, and the next begins."""
        self._budget.head(TITLE, *COLUMNS)
        for row in rows:
            name = f"{row.name} ({row.goal})" if row.goal else row.name
            if row.needs and not find_spec(row.needs):
                self._budget.row(row.model, name, f"{row.needs} is not installed")
            elif self._budget.left < LEAST:
                self._budget.row(row.model, name, "not begun: the time was over")
            else:
                self._budget.row(row.model, name, *self._cells(row))

    def _cells(self, row: Row) -> list[str]:
        began = time.perf_counter()
        seconds = min(MOST, self._budget.left)
        try:
            task = self._task(row)
            found = self._run(task, {}, seconds=max(1.0, seconds - (time.perf_counter() - began)))
        except subprocess.TimeoutExpired as error:
            return [f"did not end in {error.timeout:.0f} s"]
        except MemoryError:
            return ["does not fit into the memory"]
        except Exception as error:  # the others are still worth their minutes
            return [f"failed: {' '.join(str(error).split())[-200:]}"]
        return [*self._figures(row, found), f"{time.perf_counter() - began:.0f}"]

    def _figures(self, row: Row, found: Mapping[str, Any]) -> list[str]:
        speed = found["tokens"] / found["wall"]
        ours, best = is_ours(row), self._best.get(row.model)
        if ours:
            self._best[row.model] = max(speed, best or 0.0)
        flops, rate = found.get("flops", 0.0) / found["wall"], found.get("rate", 0.0)
        return [
            f"{speed:,.0f}",
            f"{speed / best:.2f}" if best else "",
            f"{flops / 1e12:,.1f}" if flops else "",
            f"{flops / rate:.0%} of {rate / 1e12:,.0f}" if rate else "",
            f"{found['peak'] / 1e3:,.1f}",
            str(found.get("attention", "")),
            *_exactly(found, ours),
        ]

    def _task(self, row: Row) -> dict[str, Any]:
        written = bool(row.task.get("written"))
        task = {
            "model": str(self._model(row.model, written=written)),
            "ratings": asdict(self._ratings),
            "passes": 2,
            "warm_up": 1,  # a GPU's first steps choose its kernels
            "bits": None,
            "recompute": False,
            "tokens_per_forward": 8192,
            "rows": 8,
            "written": written,
            **row.task,
        }
        return {**task, "exact": self._exact(row.model)} if is_ours(row) else task

    def _model(self, name: str, *, written: bool) -> Path:
        """Its directory; not `written`, who loads it makes its weights on the GPU, which is faster."""
        directory = self._place / f"{name.replace(' ', '-')}{'-written' if written else ''}"
        if not directory.exists():
            shape = toy(CUDA[name]) if self._small else CUDA[name]
            dtype = "float32" if self._small else "bfloat16"
            make_model(directory, shape, dtype=dtype, written=written)
        return directory

    def _exact(self, name: str) -> str:
        """The directory of its shallow model, with what fp32 on the processor finds there; empty: nothing."""
        if name not in self._references:
            self._references[name] = ""
            try:
                self._references[name] = str(self._referred(name))
            except Exception as error:  # rows without it are worth their minutes, too
                print(f"no reference for {name}: {error}", file=sys.stderr, flush=True)
        return self._references[name]

    def _referred(self, name: str) -> Path:
        directory = self._place / f"{name.replace(' ', '-')}-shallow"
        if not directory.exists():
            shape = toy(CUDA[name]) if self._small else shallow(CUDA[name])
            make_model(directory, shape, dtype="bfloat16")
            task = {
                "contender": "exact",
                "exact": str(directory),
                "bits": None,
                "recompute": False,
                "tokens_per_forward": 8192,
                "written": True,
            }
            here = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(os.cpu_count() or 1)}
            self._run(task, here, seconds=min(MOST, max(1.0, self._budget.left)))
        return directory


def is_ours(row: Row) -> bool:
    """Whether goodbot trains in it."""
    return row.task["contender"] == "torch"


def _exactly(found: Mapping[str, Any], ours: bool) -> list[str]:
    """How far loss and gradient are from what they should be, or why nobody knows."""
    if not ours:
        return ["another loss", ""]
    if "loss_off" not in found:
        return [str(found.get("exact_failed", "no reference")), ""]
    return [f"{found['loss_off']:.1e}", f"{found['gradient_off']:.1e}"]
