# SPDX-License-Identifier: Apache-2.0
"""The training benchmark runs: every contender at toy size. What it measures is nobody's test."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings

from tests.benchmarks import bench_training, contenders, exact, worth
from tests.benchmarks.budget import Budget
from tests.benchmarks.shapes import CPU, CUDA, Ratings, make_model, toy, training_flops
from tests.support import require

RATINGS = {"count": 8, "tokens": 60}
TRL = {"contender": "trl"}


@pytest.fixture(scope="module")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("torch"), require("transformers")
    directory = tmp_path_factory.mktemp("toy")
    make_model(directory, toy(CPU["27M Qwen2"]))
    return directory


def task(contender: str, model: Path) -> dict[str, Any]:
    return {
        "contender": contender,
        "model": str(model),
        "ratings": RATINGS,
        "passes": 2,
        "bits": None,
        "warm_up": 1,
        "recompute": False,
        "tokens_per_forward": 256,
        "rows": 8,
    }


@pytest.mark.parametrize("name", ["torch", "mlx"])
def test_goodbot_is_measured(name: str, toy_model: Path) -> None:
    require({"torch": "peft", "mlx": "mlx_lm"}[name])
    found = contenders._goodbot(task(name, toy_model))
    assert found["steps"] == 1
    assert min(found[key] for key in ("cpu", "wall", "tokens", "flops", "rate", "scoring")) > 0
    assert found["peak"] >= 0
    assert bool(found["attention"]) is (name == "torch"), "which kernel it takes is torch's to choose"


@pytest.mark.filterwarnings("ignore")  # TRL's and its libraries' own
def test_trl_sees_the_same_tokens(toy_model: Path) -> None:
    require("trl"), require("datasets")
    ours = contenders._goodbot(task("torch", toy_model))
    theirs = contenders._trl(task("trl", toy_model))
    assert theirs["steps"] == ours["steps"]
    assert theirs["tokens"] == ours["tokens"]


@pytest.mark.parametrize("contender", ["torch", "mlx"])
def test_a_whole_round_is_measured(toy_model: Path, contender: str) -> None:
    require({"torch": "peft", "mlx": "mlx_lm"}[contender])
    bench_training._round(toy_model, Ratings(**RATINGS), {"max_passes": 1}, contender)


def test_the_cuda_table_runs_small_and_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    require("torch"), require("peft")
    name = "30B-A3B Qwen3-MoE"
    arguments = ["--cuda", "--toy", "--repeats", "1", "--contenders", "torch", "--only", name]
    bench_training.main([*arguments, "--part", "loop"])
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows[0].startswith(f"| {name} | goodbot, torch |")
    assert rows[1].startswith(f"| {name} | goodbot, torch, recomputed |")


@pytest.fixture
def same(tmp_path: Path) -> dict[str, Any]:
    """A task of `exact` on a shallow model, with what is right beside it."""
    require("torch"), require("peft")
    make_model(tmp_path / "shallow", toy(CPU["27M Qwen2"]), dtype="bfloat16")
    about = {"bits": None, "recompute": False, "tokens_per_forward": 8192}
    found: dict[str, Any] = {"exact": str(tmp_path / "shallow"), **about}
    exact.reference(found)
    return found


def test_how_far_a_contender_is_from_what_is_right(
    same: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = exact.off({**same, "recompute": True, "tokens_per_forward": 128})
    assert max(found.values()) < 1e-4, "however it is taken apart"
    monkeypatch.setattr(contenders, "LORA", LoraSettings(rank=8, alpha=24.0))
    found = exact.off(same)
    assert found["gradient_off"] > 0.1
    assert found["loss_off"] > 1e-5


def test_a_compiled_one_computes_the_same(same: dict[str, Any], toy_model: Path) -> None:
    """In a process of its own: goodbot switches the compiler off."""
    found = bench_training._child({**task("torch", toy_model), **same, "compiled": True, "written": True})
    assert found["steps"] == 1
    assert max(found["loss_off"], found["gradient_off"]) < 1e-4


def test_rows_of_a_gpu_come_in_order_of_worth_within_the_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("torch"), require("transformers")
    now, ran = [0.0], list[str]()

    def run(task: dict[str, Any], environ: dict[str, str], *, seconds: float) -> dict[str, Any]:
        ran.append(task["contender"])
        if task["contender"] == "exact":
            assert environ["CUDA_VISIBLE_DEVICES"] == ""
            return {}
        if task["contender"] == "trl":
            now[0] += seconds
            raise subprocess.TimeoutExpired("trl", seconds)
        now[0] += 40
        if task["recompute"]:
            raise RuntimeError("no\nkernel")
        figures = {"tokens": 100.0, "wall": 2.0, "peak": 68_900.0, "flops": 7.2e14, "rate": 8e14}
        return {**figures, "attention": "flash", "loss_off": 0.002, "gradient_off": 0.03}

    rows = [row for row in worth.FIRST if not row.needs] + [
        worth.Row(model="8B Qwen3", name="last", task=TRL)
    ] * 2
    budget = Budget(minutes=4, place=tmp_path, clock=lambda: now[0])
    worth.Bench(tmp_path / "models", budget, run, small=True).table(rows)
    told = [list(json.loads(line).values()) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert told[0][2:10] == ["50", "", "360.0", "45% of 800", "68.9", "flash", "2.0e-03", "3.0e-02"]
    assert told[0][-1] == "200"
    assert told[1][2] == "failed: no kernel"
    assert [row[1] for row in told[2:4]] == ["goodbot, 32,768 at once (2 × TRL)", "goodbot, compiled"]
    assert told[3][3] == "1.00", "beside the fastest so far of the same model"
    assert told[4][2].startswith("did not end in ")
    assert told[5][2] == "not begun: the time was over"
    assert ran == ["exact", "torch", "torch", "exact", "torch", "torch", "trl"]
    printed = capsys.readouterr().out
    assert all(" | ".join(row) in printed for row in told)


def test_shapes_are_as_large_as_their_names() -> None:
    transformers, torch = require("transformers"), require("torch")
    sizes = {"4M Llama": 4e6, "27M Qwen2": 27e6, "0.5B Qwen2": 0.5e9, "8B Qwen3": 8e9}
    for name, size in {**sizes, "30B-A3B Qwen3-MoE": 30e9}.items():
        config = transformers.AutoConfig.for_model(**{**CPU, **CUDA}[name])
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        assert model.num_parameters() == pytest.approx(size, rel=0.06), name


def test_ratings_have_the_tokens_that_they_promise() -> None:
    items = Ratings().items()
    letters = [len(item["messages"][0]["content"]) + len(item["response"]) for item in items]
    assert len(items) == 32
    assert np.mean(letters) + 21 == pytest.approx(211, rel=0.05)
    assert items == Ratings().items()


def test_flops_by_hand() -> None:
    assert training_flops(10, 4, 100, 5, 30) == 10 * (400 + 30) + 4 * 120
