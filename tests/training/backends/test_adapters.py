# SPDX-License-Identifier: Apache-2.0
"""Adapters on disk: PEFT's layout, the same bytes, and a sentence for everything that is off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.base.errors import AdapterError

from tests.support import require

require("safetensors")

from goodbot_training.backends.adapters import (  # noqa: E402
    AdapterWeights,
    blend,
    fit,
    fresh,
    read_adapter,
    weaken,
    write_adapter,
)

SHAPES = {"model.layers.0.mlp.up_proj": (6, 4), "model.layers.0.mlp.down_proj": (4, 6)}


def adapter() -> AdapterWeights:
    return fresh(SHAPES, rank=2, alpha=4.0, seed=1)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter(), base_model="Qwen/Qwen3-8B")
    again = read_adapter(tmp_path)
    assert (again.rank, again.alpha, again.scale) == (2, 4.0, 2.0)
    for path, (a, b) in adapter().pairs.items():
        np.testing.assert_array_equal(again.pairs[path][0], a)
        np.testing.assert_array_equal(again.pairs[path][1], b)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "Qwen/Qwen3-8B"
    assert config["target_modules"] == ["down_proj", "up_proj"]


def test_no_path_of_this_machine_is_written(tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter(), base_model=str(tmp_path))
    assert str(tmp_path) not in (tmp_path / "adapter_config.json").read_text()


def test_a_fresh_adapter_depends_on_seed_and_path_only() -> None:
    one, two = adapter(), fresh(dict(reversed(SHAPES.items())), rank=2, alpha=1.0, seed=1)
    other = fresh(SHAPES, rank=2, alpha=4.0, seed=2)
    for path in SHAPES:
        np.testing.assert_array_equal(one.pairs[path][0], two.pairs[path][0])
        assert not np.array_equal(one.pairs[path][0], other.pairs[path][0])
        assert not one.pairs[path][1].any()


def change_config(directory: Path, **changes: Any) -> None:
    path = directory / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"rank_pattern": {"up_proj": 3}}, "another rank"),
        ({"peft_type": "IA3"}, "not a LoRA"),
        ({"r": "two"}, "rank"),
        ({"r": 3}, "another rank"),
    ],
)
def test_foreign_kinds_are_refused(changes: dict[str, Any], word: str, tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter())
    change_config(tmp_path, **changes)
    with pytest.raises(AdapterError, match=word):
        read_adapter(tmp_path)


def test_rslora_scales_by_the_root(tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter())
    change_config(tmp_path, use_rslora=True)
    assert read_adapter(tmp_path).scale == pytest.approx(4 / 2**0.5)


def test_bf16_is_read(tmp_path: Path) -> None:
    write_adapter(tmp_path, adapter())
    name = "base_model.model.x.lora_{}.weight"
    halves = {"A": np.array([[1.5, -2.0]], np.float32), "B": np.array([[0.25]], np.float32)}
    header, content = {}, b""
    for half, array in halves.items():
        data = (array.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name.format(half)] = {
            "dtype": "BF16",
            "shape": array.shape,
            "data_offsets": (len(content), len(content) + len(data)),
        }
        content += data
    head = json.dumps(header).encode()
    weights = len(head).to_bytes(8, "little") + head + content
    (tmp_path / "adapter_model.safetensors").write_bytes(weights)
    change_config(tmp_path, r=1)
    a, b = read_adapter(tmp_path).pairs["x"]
    assert a.tolist() == [[1.5, -2.0]]
    assert b.tolist() == [[0.25]]


def test_missing_torn_empty_and_poisoned_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="is missing"):
        read_adapter(tmp_path)
    write_adapter(tmp_path, adapter())
    weights = tmp_path / "adapter_model.safetensors"
    whole = weights.read_bytes()
    for cut in (0, 4, 40, len(whole) - 1):
        weights.write_bytes(whole[:cut])
        with pytest.raises(AdapterError):
            read_adapter(tmp_path)
    poisoned = adapter()
    poisoned.pairs["model.layers.0.mlp.up_proj"][1][0, 0] = np.nan
    write_adapter(tmp_path, poisoned)
    with pytest.raises(AdapterError, match="not finite"):
        read_adapter(tmp_path)


def test_fitting_to_a_model(tmp_path: Path) -> None:
    whole = fit(adapter(), SHAPES | {"new": (3, 5)}, tmp_path)
    assert [part.shape for part in whole.pairs["new"]] == [(2, 5), (3, 2)]
    assert not any(part.any() for part in whole.pairs["new"])
    for shapes in ({}, SHAPES | {"model.layers.0.mlp.up_proj": (7, 4)}):
        with pytest.raises(AdapterError, match="not for this model"):
            fit(adapter(), shapes, tmp_path)


EXPERTS = {
    "model.layers.0.self_attn.q_proj": (4, 6),
    "model.layers.0.mlp.shared_expert.up_proj": (3, 6),
    "model.layers.0.mlp.experts.gate_up_proj": (5, 8, 6),
    "model.layers.0.mlp.experts.down_proj": (5, 6, 4),
}


def sparse() -> AdapterWeights:
    started = fresh(EXPERTS, rank=4, alpha=8.0, seed=1, expert_rank=2)
    random = np.random.default_rng(0)
    pairs = {
        path: (a, random.standard_normal(b.shape).astype(np.float32))
        for path, (a, b) in started.pairs.items()
    }
    return AdapterWeights(rank=4, alpha=8.0, scale=2.0, pairs=pairs)


def test_experts_keep_their_shape_their_rank_and_their_bytes(tmp_path: Path) -> None:
    write_adapter(tmp_path / "one", sparse())
    again = read_adapter(tmp_path / "one")
    for path, (a, b) in sparse().pairs.items():
        np.testing.assert_array_equal(again.pairs[path][0], a)
        np.testing.assert_array_equal(again.pairs[path][1], b)
    assert again.pairs["model.layers.0.mlp.experts.down_proj"][0].shape == (5, 2, 4)
    write_adapter(tmp_path / "two", again)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    config = json.loads((tmp_path / "one/adapter_config.json").read_text())
    assert config["target_modules"] == ["q_proj"]
    assert config["target_parameters"] == [
        "experts.gate_up_proj",
        "experts.down_proj",
        "shared_expert.up_proj.weight",
    ]
    assert set(config["rank_pattern"].values()) == {2}
    assert set(config["alpha_pattern"].values()) == {4.0}


def test_a_scale_of_its_own_is_folded_into_b(tmp_path: Path) -> None:
    weights = adapter()
    path = "model.layers.0.mlp.up_proj"
    weights.pairs[path][1][:] = 1
    write_adapter(tmp_path, weights)
    change_config(tmp_path, alpha_pattern={r".*\.up_proj": 12.0})
    assert (read_adapter(tmp_path).pairs[path][1] == 1).all(), "an expression is not run"
    change_config(tmp_path, alpha_pattern={r"mlp\.up_proj": 12.0})
    again = read_adapter(tmp_path)
    assert again.scale == 2.0
    assert (again.pairs[path][1] == 3).all()


def test_another_framework_may_name_the_block_otherwise(tmp_path: Path) -> None:
    theirs = {path.replace("mlp.experts", "moe.switch"): shape for path, shape in EXPERTS.items()}
    found = fit(sparse(), theirs, tmp_path)
    for path, own in zip(EXPERTS, theirs, strict=True):
        np.testing.assert_array_equal(found.pairs[own][1], sparse().pairs[path][1])
    twice = theirs | {"model.layers.0.other.down_proj": (5, 6, 4)}
    with pytest.raises(AdapterError, match="not for this model"):
        fit(sparse(), twice, tmp_path)


PATH = "model.layers.0.mlp.up_proj"


def pair(a: float, b: float, alpha: float = 4.0) -> AdapterWeights:
    """One projection with A and B full of these numbers."""
    full = (np.full((2, 4), a, np.float32), np.full((6, 2), b, np.float32))
    return AdapterWeights(rank=2, alpha=alpha, scale=alpha / 2, pairs={PATH: full})


@pytest.mark.parametrize(
    ("parent", "blended"),
    [
        (None, (3.0, 2.0)),  # from the base: A as it is, half of B
        (pair(1.0, 2.0), (2.0, 3.0)),
        (pair(1.0, 2.0, alpha=8.0), (2.0, 4.0)),  # whose B counts twice as much
    ],
)
def test_half_way_from_the_parent(parent: AdapterWeights | None, blended: tuple[float, float]) -> None:
    half = blend(pair(3.0, 4.0), parent, 0.5)
    a, b = half.pairs[PATH]
    assert (a == blended[0]).all()
    assert (b == blended[1]).all()
    assert half.scale == 2.0


def test_no_way_is_the_parent_and_the_whole_way_the_adapter() -> None:
    parent, child = pair(1.0, 2.0), pair(3.0, 4.0)
    for share, same in ((0.0, parent), (1.0, child)):
        for one, other in zip(blend(child, parent, share).pairs[PATH], same.pairs[PATH], strict=True):
            np.testing.assert_array_equal(one, other)


def test_weakening_keeps_the_files_and_the_name_of_the_base(tmp_path: Path) -> None:
    write_adapter(tmp_path, pair(3.0, 4.0), base_model="Qwen/Qwen3-8B")
    weaken(tmp_path, None, 0.25)
    assert (read_adapter(tmp_path).pairs[PATH][1] == 1.0).all()
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "Qwen/Qwen3-8B"


def test_a_parent_that_another_framework_has_made_is_found_by_its_place(tmp_path: Path) -> None:
    child, parent = tmp_path / "child", tmp_path / "parent"
    full = pair(1.0, 2.0).pairs[PATH]
    elsewhere = AdapterWeights(
        rank=2, alpha=4.0, scale=2.0, pairs={"language_model.layers.0.feed_forward.up_proj": full}
    )
    write_adapter(child, pair(3.0, 4.0))
    write_adapter(parent, elsewhere)
    weaken(child, parent, 0.5)
    a, b = read_adapter(child).pairs[PATH]
    assert (a == 2.0).all()
    assert (b == 3.0).all(), "half way from 2, not half of 4"


def test_a_parent_of_another_model_weakens_nothing(tmp_path: Path) -> None:
    write_adapter(tmp_path / "child", pair(3.0, 4.0))
    write_adapter(tmp_path / "parent", adapter())
    with pytest.raises(AdapterError, match="not for this model"):
        weaken(tmp_path / "child", tmp_path / "parent", 0.5)
