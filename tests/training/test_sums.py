# SPDX-License-Identifier: Apache-2.0
"""A sum of adapters does what both do, on torch and MLX; one part is trained while the other stands still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import FreezesRanks, LoraSettings, OptimizerSettings
from goodbot_training.backends.adapters import AdapterWeights, fresh, read_adapter, write_adapter
from goodbot_training.backends.packing import pack
from goodbot_training.backends.sums import added, beyond, count, moving, ranks, shapes
from goodbot_training.formats import jobs
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Baseline, Job
from goodbot_training.round.standing import summed

from tests.support import require
from tests.training.oracle import batch, objective

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWERS = ("Paris.", "Arr matey! It be Paris.", "I do not know, I am sorry.")
NAMES = ("torch", "mlx")


@pytest.fixture(scope="module")
def backends(random_model: Path) -> dict[str, Any]:
    for name in ("torch", "peft", "mlx_lm"):
        require(name)
    from goodbot_training.backends.mlx.trainer import MlxBackend
    from goodbot_training.backends.torch.trainer import TorchBackend

    loaded: dict[str, Any] = {"torch": TorchBackend(), "mlx": MlxBackend()}
    for backend in loaded.values():
        backend.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return loaded


def drawn(backend: Any, rank: int, scale: float, seed: int) -> AdapterWeights:
    """An adapter with an effect."""
    random = np.random.default_rng(seed)
    begun = fresh(backend._model.shapes, rank=rank, alpha=scale * rank, seed=seed)
    pairs = {
        path: (a, 0.05 * random.standard_normal(b.shape).astype(np.float32))
        for path, (a, b) in begun.pairs.items()
    }
    return AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)


def scores(backend: Any, *, adapter: bool = True) -> list[Any]:
    turns = [backend.tokenize(QUESTION, answer) for answer in ANSWERS]
    return backend.logprobs(turns, temperature=[1.0] * len(ANSWERS), adapter=adapter)


def merged(backend: Any, adapters: tuple[AdapterWeights, ...], sign: float) -> None:
    """Add what adapters do to the base's own matrices, or take it away."""
    for path, layer in backend._model._layers.items():
        delta = sum(one.scale * one.pairs[path][1] @ one.pairs[path][0] for one in adapters)
        if backend.name == "torch":
            import torch

            layer.base_layer.weight.data += sign * torch.tensor(delta)
        else:
            import mlx.core as mx

            layer.linear.weight = layer.linear.weight + sign * mx.array(delta)


@pytest.mark.parametrize("name", NAMES)
def test_a_sum_is_the_base_and_both_adapters(name: str, backends: dict[str, Any], tmp_path: Path) -> None:
    backend = backends[name]
    one, other = drawn(backend, 4, 2.0, 1), drawn(backend, 3, 0.5, 2)
    write_adapter(tmp_path, added(one, other))
    backend.load_adapter(tmp_path)
    assert read_adapter(tmp_path).rank == 7
    found = scores(backend)
    for parts, same in (((one, other), True), ((one,), False), ((other,), False)):
        merged(backend, parts, 1.0)
        expected = scores(backend, adapter=False)
        merged(backend, parts, -1.0)
        apart = max(float(np.abs(a - b).max()) for a, b in zip(found, expected, strict=True))
        assert (apart < 2e-4) is same, apart


def test_each_part_is_found_again(backends: dict[str, Any]) -> None:
    one, other = drawn(backends["torch"], 4, 2.0, 1), drawn(backends["torch"], 3, 0.5, 2)
    left = beyond(added(one, other), ranks(one))
    assert (left.rank, left.scale) == (3, 1.0)
    masks = moving(added(one, other), ranks(one)).values()
    still = sum(int((mask == 0).sum()) for pair in masks for mask in pair)
    assert count(shapes(one), ranks(one)) == still > 0
    for path, (a, b) in other.pairs.items():
        np.testing.assert_array_equal(left.pairs[path][0], a)
        np.testing.assert_array_equal(left.pairs[path][1], b * np.float32(0.5))


def test_what_stands_still_is_not_trained_and_the_rest_is(backends: dict[str, Any], tmp_path: Path) -> None:
    shared = drawn(backends["torch"], 4, 2.0, 1)
    write_adapter(tmp_path / "shared", shared)
    start = added(shared, fresh(backends["torch"]._model.shapes, rank=3, alpha=3.0, seed=2))
    write_adapter(tmp_path / "start", start)
    base = scores(backends["torch"], adapter=False)
    turns = [backends["torch"].tokenize(QUESTION, answer) for answer in ANSWERS]
    norms: list[float] = []
    ends: list[list[Any]] = []
    moved = 0.0
    for backend in backends.values():
        freezes: object = backend
        assert isinstance(freezes, FreezesRanks)
        backend.load_adapter(tmp_path / "start")
        before = scores(backend)
        backend.freeze(tmp_path / "shared")
        data = [batch(turns, base, base)] * 6
        steps = list(backend.train(iter(data), OptimizerSettings(weight_decay=0.1), objective("scale")))
        backend._still = {}
        norms.append(steps[0].grad_norm)
        ends.append(scores(backend))
        moved = max(float(np.abs(a - b).max()) for a, b in zip(before, ends[-1], strict=True))
        assert moved > 0.05
        learnt = backend._model.extract().pairs
        for path, (a, b) in learnt.items():
            np.testing.assert_array_equal(a[:4], start.pairs[path][0][:4])
            np.testing.assert_array_equal(b[:, :4], start.pairs[path][1][:, :4])
        assert any(b[:, 4:].any() for _, b in learnt.values()), "it began as zeros"
    np.testing.assert_allclose(norms[0], norms[1], rtol=1e-3)
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, atol=5e-2 * moved)


def test_an_own_part_is_put_on_another_shared_adapter(
    backends: dict[str, Any], random_model: Path, tmp_path: Path
) -> None:
    backend = backends["torch"]
    old, new, own = drawn(backend, 4, 2.0, 1), drawn(backend, 2, 1.0, 3), drawn(backend, 3, 0.5, 2)
    for name, weights in (
        ("old", old),
        ("new", new),
        ("own", added(old, own)),
        ("expected", added(new, own)),
    ):
        write_adapter(tmp_path / name, weights)
    raw = {
        "protocol": 1,
        "to": "sum",
        "model": str(random_model),
        "adapter": str(tmp_path / "own"),
        "rests_on": str(tmp_path / "old"),
        "onto": str(tmp_path / "new"),
        "output": str(tmp_path / "sum"),
    }
    events: list[dict[str, Any]] = []
    jobs.run(jobs.ConversionJob.parse(raw), events.append)
    assert events[-1]["event"] == "done"
    backend.load_adapter(tmp_path / "expected")
    expected = scores(backend)
    backend.load_adapter(tmp_path / "sum")
    for one, other in zip(scores(backend), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert read_adapter(tmp_path / "sum").rank == 5


def test_a_round_goes_on_from_the_sum_and_leaves_nothing_of_it(
    backends: dict[str, Any], tmp_path: Path
) -> None:
    shared, newer = drawn(backends["torch"], 4, 2.0, 1), drawn(backends["torch"], 4, 1.0, 5)
    own = drawn(backends["torch"], 3, 0.5, 2)
    for name, weights in (("shared", shared), ("newer", newer), ("own", added(shared, own))):
        write_adapter(tmp_path / name, weights)
    (tmp_path / "output").mkdir()
    job = Job(
        run=1,
        model=tmp_path,
        parent=None,
        output=tmp_path / "output",
        seed=1,
        settings=TrainingSettings(rank=3, alpha=3.0),
        baseline=Baseline(),
        behaviour={},
        items=(),
        anchors=(),
        frozen=tmp_path / "shared",
    )
    with summed(job) as first:
        assert first.parent is not None
        assert not first.settings.start_over
        begun = read_adapter(first.parent)
        for path, (_, b) in begun.pairs.items():
            assert not b[:, 4:].any(), "the own part has no effect yet"
            np.testing.assert_allclose(b[:, :4], 2.0 * shared.pairs[path][1], rtol=1e-6)
    on_it = replace(job, parent=tmp_path / "own", rests_on=tmp_path / "shared")
    with summed(on_it) as same:
        assert same.parent == tmp_path / "own"
    with summed(replace(on_it, frozen=tmp_path / "newer")) as moved:
        assert moved.parent is not None
        pairs = read_adapter(moved.parent).pairs
        for path, (_, b) in pairs.items():
            np.testing.assert_allclose(b[:, :4], newer.pairs[path][1], rtol=1e-6)
            np.testing.assert_allclose(b[:, 4:], 0.5 * own.pairs[path][1], rtol=1e-6)
    assert list((tmp_path / "output").iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_sums_stand_beside_others_in_one_pass(name: str, backends: dict[str, Any]) -> None:
    """The base, the shared one, and what two scopes have laid beside it: each row is what it is alone."""
    backend = backends[name]
    model, shared = backend._model, drawn(backend, 4, 2.0, 1)
    sums = [added(shared, drawn(backend, 3, 0.5, seed)) for seed in range(2, 7)]
    turn = backend.tokenize(QUESTION, ANSWERS[1])

    def told(adapters: list[AdapterWeights | None]) -> Any:
        packed = pack([turn] * len(adapters), vocabulary=model.vocabulary)
        with model.row_adapters.rows(adapters):
            return np.asarray(model.scores(packed, [1.0] * len(adapters)))

    for rows in ([None, shared, sums[0], sums[1], shared], [None, shared, *sums, sums[0]]):
        together = told(rows)
        for row, one in zip(together, rows, strict=True):
            np.testing.assert_allclose(row, told([one])[0], atol=2e-4)
        assert float(np.abs(together[1] - together[2]).max()) > 1e-3
