# SPDX-License-Identifier: Apache-2.0
"""The training benchmark runs: every contender at toy size. What it measures is nobody's test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import bench_training, contenders
from tests.benchmarks.shapes import CPU, CUDA, Ratings, make_model, toy, training_flops
from tests.support import require

RATINGS = {"count": 8, "tokens": 60}


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
