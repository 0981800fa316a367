# SPDX-License-Identifier: Apache-2.0
"""An adapter of each preset's rank is written, read again and trained on, in every family."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api import model_shape
from goodbot.api.sampler import TokenizedTurn

from tests.support import require
from tests.training.backends.families import FAMILIES, VOCABULARY, make, save

for _needed in ("torch", "peft", "transformers"):
    require(_needed)

import torch  # noqa: E402
from goodbot_training.backends.adapters import AdapterWeights, blend, fit, fresh, read_adapter, write_adapter  # noqa: E402
from goodbot_training.backends.packing import pack  # noqa: E402
from goodbot_training.backends.torch.model import TorchModel  # noqa: E402
from goodbot_training.job.presets import resolve  # noqa: E402
from goodbot_training.job.settings import TrainingSettings  # noqa: E402

IDS = np.random.default_rng(0).integers(3, VOCABULARY, (2, 20))
RANKS = (8, 16, 32, 64)
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")


@functools.cache
def loaded(name: str, root: Path) -> tuple[TorchModel, dict[str, Any]]:
    family, directory = FAMILIES[name], root / name.replace(" ", "-")
    model = make(family)
    # A checkpoint of gpt-oss for mlx-lm is another than the one that transformers reads.
    model.save_pretrained(directory) if family.kind == "gpt_oss" else save(model, family, directory)
    config = model.config.to_dict()
    return TorchModel(directory, config, 8, None), config


def preset_ranks(config: dict[str, Any]) -> set[int]:
    """The rank of each preset on a model of this shape."""
    shape = model_shape.read(config)
    presets = [{"preset": name} for name in ("careful", "balanced", "aggressive", "custom")]
    return {TrainingSettings.from_mapping({**own, **resolve(own, shape).values}).rank for own in presets}


def adapter(model: TorchModel, config: dict[str, Any], rank: int) -> AdapterWeights:
    own = model_shape.experts(config).rank(rank)
    started = fresh(model.shapes, rank=rank, alpha=float(rank), seed=1, expert_rank=own)
    random = np.random.default_rng(rank)
    pairs = {
        path: (a, 0.1 * random.standard_normal(b.shape).astype(np.float32))
        for path, (a, b) in started.pairs.items()
    }
    return AdapterWeights(rank=rank, alpha=float(rank), scale=1.0, pairs=pairs)


def gradients(model: TorchModel) -> Any:
    """The log-probs of some tokens, and what they change in the adapter."""
    turns = [TokenizedTurn(prompt=tuple(ids[:10]), response=tuple(ids[10:])) for ids in IDS.tolist()]
    packed = pack(turns, vocabulary=VOCABULARY)
    for parameter in model.parameters():
        parameter.grad = None
    found = model.logprobs(packed, [1.0] * len(IDS))
    found.sum().backward()
    return found.detach().numpy(), [parameter.grad for parameter in model.parameters()]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_round_has_written_the_gate_reads_and_the_next_round_trains(
    name: str, root: Path, tmp_path: Path
) -> None:
    model, config = loaded(name, root)
    assert preset_ranks(config) <= set(RANKS)
    for rank in RANKS:
        weights = adapter(model, config, rank)
        model.assign(model.prepare(weights))
        expected, _ = gradients(model)
        assert np.isfinite(expected).all()
        write_adapter(tmp_path, weights)
        again = fit(read_adapter(tmp_path), model.shapes, tmp_path)
        for version in (again, blend(again, None, 1.0)):  # whole, or by its strength
            model.assign(model.prepare(version))
            found, learnt = gradients(model)
            np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=f"rank {rank}")
            assert all(grad is not None and grad.abs().sum() > 0 for grad in learnt)


def test_halves_of_experts_lie_in_one_piece_however_they_come(root: Path, tmp_path: Path) -> None:
    model, config = loaded("mixtral", root)
    weights = adapter(model, config, 16)
    write_adapter(tmp_path, weights)
    halves = [half for pair in read_adapter(tmp_path).pairs.values() for half in pair]
    assert all(half.flags.c_contiguous for half in halves)
    turned = AdapterWeights(
        rank=16,
        alpha=16.0,
        scale=1.0,
        pairs={path: (np.asfortranarray(a), np.asfortranarray(b)) for path, (a, b) in weights.pairs.items()},
    )
    _, pairs = model.prepare(turned)
    assert all(half.is_contiguous() for pair in pairs.values() for half in pair)
    assert torch.equal(next(iter(pairs.values()))[1], torch.tensor(next(iter(weights.pairs.values()))[1]))
