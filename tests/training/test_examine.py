# SPDX-License-Identifier: Apache-2.0
"""How far two adapters are apart, without ever making B·A; and what is too absurd to be served."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import AdapterError

from tests.support import patience, require

np = require("numpy")
require("safetensors")

from goodbot_training.backends.adapters import AdapterWeights, fresh, read_adapter, write_adapter  # noqa: E402
from goodbot_training.process.inspect import examine  # noqa: E402

SHAPES = {
    "model.layers.0.self_attn.q_proj": (6, 4),
    "model.layers.0.mlp.up_proj": (8, 4),
    "model.layers.5.self_attn.q_proj": (6, 4),
    "model.layers.5.mlp.experts.down_proj": (3, 4, 8),
}


def adapter(seed: int, *, alpha: float = 4.0) -> AdapterWeights:
    made = fresh(SHAPES, rank=2, alpha=alpha, seed=seed)
    random = np.random.default_rng(seed)
    for _, b in made.pairs.values():
        b[:] = random.standard_normal(b.shape) / 10
    return made


def written(path: Path, weights: AdapterWeights) -> Path:
    write_adapter(path, weights)
    return path


def delta(weights: AdapterWeights, path: str) -> Any:
    a, b = weights.pairs[path]
    return weights.scale * (b.astype(np.float64) @ a)


def test_the_distance_is_that_of_the_products(tmp_path: Path) -> None:
    one, two = adapter(1), adapter(2, alpha=8.0)
    found = examine(written(tmp_path / "one", one), written(tmp_path / "two", two))
    for name, layers in (("q_proj", "attention"), ("up_proj", "feed-forward"), ("experts", "experts")):
        paths = [path for path in SHAPES if name in path]
        groups = [group for group in found["groups"] if group["name"].startswith(layers)]
        assert len(groups) == len(paths), "each third of the layers is a group"
        for path, group in zip(paths, groups, strict=True):
            assert group["change"] == pytest.approx(
                np.linalg.norm(delta(two, path) - delta(one, path)), rel=1e-6
            )
            assert group["before"] == pytest.approx(np.linalg.norm(delta(one, path)), rel=1e-6)
            assert group["after"] == pytest.approx(np.linalg.norm(delta(two, path)), rel=1e-6)
    total = sum(np.linalg.norm(delta(two, path)) ** 2 for path in SHAPES) ** 0.5
    assert found["size"] == pytest.approx(total, rel=1e-6)
    largest = max(np.sqrt(np.mean(delta(two, path) ** 2)) for path in SHAPES)
    assert found["rms"] == pytest.approx(largest, rel=1e-6)


def test_from_the_base_and_to_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "one", adapter(1))
    base = examine(None, path)
    assert base["change"] == pytest.approx(base["size"])
    assert (base["before"], examine(path, path)["change"]) == (0.0, pytest.approx(0.0, abs=1e-6))


def test_what_only_one_of_them_changes_counts_whole(tmp_path: Path) -> None:
    one = adapter(1)
    less = replace(one, pairs=dict(list(one.pairs.items())[1:]))
    found = examine(written(tmp_path / "less", less), written(tmp_path / "one", one))
    [first, *_] = SHAPES
    assert found["change"] == pytest.approx(np.linalg.norm(delta(one, first)), rel=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_refused(tmp_path: Path, value: float) -> None:
    bad = adapter(1)
    bad.pairs["model.layers.0.mlp.up_proj"][0][0, 0] = value
    with pytest.raises(AdapterError, match="not finite"):
        examine(None, written(tmp_path / "bad", bad))


@pytest.mark.parametrize("factor", [1e3, 1e18, 3e38])
def test_numbers_that_would_drown_the_model_are_refused(tmp_path: Path, factor: float) -> None:
    bad = adapter(1)
    for part in bad.pairs["model.layers.0.mlp.up_proj"]:
        part[:] = np.clip(part * factor, -3e38, 3e38)
    with pytest.raises(AdapterError, match=r"up_proj by .* would drown the model"):
        examine(None, written(tmp_path / "bad", bad))


def test_an_alpha_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="would drown the model"):
        examine(None, written(tmp_path / "bad", adapter(1, alpha=1e300)))


def ask(request: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "goodbot_training.process.inspect"],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(60),
    )
    return json.loads(done.stdout)


def test_the_child_answers_in_one_line_and_imports_no_framework(tmp_path: Path) -> None:
    path = str(written(tmp_path / "one", adapter(1)))
    assert ask({"before": None, "after": path})["event"] == "done"
    told = ask({"before": path, "after": str(tmp_path / "nothing")})
    assert (told["event"], "missing" in told["reason"]) == ("failed", True)
    code = (
        "import sys, goodbot_training.process.inspect; "
        "print({'torch', 'mlx', 'aiosqlite'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_numbers_survive_the_disk(tmp_path: Path) -> None:
    one = adapter(1)
    back = read_adapter(written(tmp_path / "one", one))
    for path in SHAPES:
        assert np.allclose(delta(back, path), delta(one, path))
