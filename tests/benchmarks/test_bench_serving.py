# SPDX-License-Identifier: Apache-2.0
"""The serving benchmark runs, small. What it measures is nobody's test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import bench_serving, serving_adapters
from tests.benchmarks.budget import Budget
from tests.benchmarks.serving_contenders import Contender, Embedded, Generate, MlxServer, generating, make
from tests.benchmarks.serving_schedulers import batching_in_torch
from tests.support import require


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("torch"), require("transformers")
    return make(tmp_path_factory.mktemp("model"))


async def test_swaps_under_chats_fail_nobody(tmp_path: Path) -> None:
    """As a GPU's table has them, small and without a GPU."""
    require("torch"), require("peft")
    arguments = ["--cuda", "--toy", "--minutes", "5", "--part", "swaps", "--swaps", "6"]
    options = bench_serving.asked(arguments)
    assert (options.backend, options.tokens, options.repeats) == ("torch", 6, 1)
    await bench_serving.within(Budget(minutes=5, place=tmp_path), options)
    [told] = (tmp_path / "rows.jsonl").read_text().splitlines()
    row = list(json.loads(told).values())
    assert row[:2] == ["torch", "6"]
    assert int(row[2]) > 4
    assert row[3] == "0", "failed, or signed by a version that was not active"


def test_many_adapters_are_measured_beside_one(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("peft")
    for name, value in {"COUNTS": (5, 6), "CHATS": 5, "TOKENS": 2, "_DRAWN": 6}.items():
        monkeypatch.setattr(serving_adapters, name, value)
    found = [*serving_adapters.table("torch", model, 1, 2)]
    assert [line[:2] for line in found] == [["torch", "5"], ["torch", "6"]]
    assert found[0][2] == "5"
    assert all(float(line[3].replace(",", "")) > 0 and float(line[4]) > 0 for line in found)


async def test_what_outlasts_the_minutes_is_a_row_and_not_waited_for(tmp_path: Path) -> None:
    clock = iter((0.0, 60.0, 60.0))
    budget = Budget(minutes=1, place=tmp_path, clock=lambda: next(clock))
    budget.head("Answers", "backend", "tokens/s")
    bench = object.__new__(bench_serving.Bench)
    bench._budget, bench._most = budget, 45.0
    assert not await bench._rows("torch", asyncio.sleep(3600, []))
    told = json.loads((tmp_path / "rows.jsonl").read_text())
    assert told == {"backend": "torch", "tokens/s": "did not end in 0 s", "left, s": "0"}


@pytest.mark.parametrize(
    "contender",
    [
        lambda model: Embedded(bench_serving.mlx(), model),
        MlxServer,
        lambda model: Generate(model, mlx=True),
        lambda model: Generate(model, mlx=True, batching=True),
    ],
)
async def test_servers_are_measured(
    contender: Callable[[Path], Contender], model: Path, tmp_path: Path
) -> None:
    require("mlx_lm")
    one = contender(model)
    await one.start(tmp_path)
    try:
        [row] = await bench_serving.throughput({"goodbot": one}, 2, 1, 1, tokens=3)
    finally:
        await one.stop()
    assert row[:2] == ["2", "goodbot"]
    assert min(float(cell.replace(",", "")) for cell in row[2:4]) > 0


@pytest.mark.parametrize("made", [generating, batching_in_torch])
@pytest.mark.parametrize("together", [1, 3])
def test_what_transformers_writes_with_is_measured(
    model: Path, together: int, made: Callable[[Path], Any]
) -> None:
    task = {"questions": ["Hello?", "Why on earth?", "salt"], "together": together, "max_tokens": 2}
    found = made(model)(task)
    assert 3 <= found["tokens"] <= 6
    assert found["first"] > 0
