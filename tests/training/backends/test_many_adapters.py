# SPDX-License-Identifier: Apache-2.0
"""Many adapters of several ranks in one pass, and more of them than there is memory for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import AdapterError
from goodbot_training.backends import residency, row_adapters
from goodbot_training.backends.adapters import AdapterWeights, fresh
from goodbot_training.backends.packing import pack
from goodbot_training.backends.residency import StoredAdapter

from tests.support import require
from tests.training.backends.test_batching import ask, backend, batches, by, rest, same

__all__ = ["backend"]
RANKS = (8, 2, 16, 4)
COUNTS = (25, 33, 65)


def adapter(model: Any, seed: int) -> AdapterWeights:
    """Of random weights, on all but one projection."""
    rank = RANKS[seed % len(RANKS)]
    weights = fresh(model.shapes, rank=rank, alpha=2.0 * rank, seed=seed)
    random = np.random.default_rng(seed)
    for number, (_, b) in enumerate(weights.pairs.values()):
        if number != seed % len(weights.pairs):
            b[:] = random.standard_normal(b.shape) * 0.1
    return weights


def load(sampler: Any, versions: range) -> None:
    for version in versions:
        weights = adapter(sampler._model, version)
        sampler.keep_adapter(version, StoredAdapter(directory=Path("nowhere"), weights=weights))


@pytest.mark.parametrize("count", COUNTS)
def test_a_row_is_what_its_adapter_makes_of_it_alone(backend: Any, count: int) -> None:
    """As if it were in place: those numbers come from layers that know of no rows."""
    model = backend._model
    random = np.random.default_rng(count)
    turns = [
        TokenizedTurn(prompt=tuple(random.integers(3, 300, 5 + row % 4)), response=(5, 8, 13))
        for row in range(count + 1)
    ]
    adapters = [None, *(adapter(model, seed) for seed in range(count))]
    with model.row_adapters.rows(adapters):
        found = model.scores(pack(turns, vocabulary=model.vocabulary), [1.0] * len(turns))
    expected: list[Any] = []
    for turn, one in zip(turns, adapters, strict=True):
        model.enabled = one is not None
        if one is not None:
            model.assign(model.prepare(one))
        expected.append(model.scores(pack([turn], vocabulary=model.vocabulary), [1.0])[0])
    model.enabled = False
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert len({row.tobytes() for row in np.round(expected, 2)}) > count // 2, "they differ"


def test_answers_of_33_versions_are_one_batch_and_each_as_alone(sampler: Any) -> None:
    load(sampler, range(1, 34))
    asked = {version: ask(version % 3, max_tokens=5, seed=version) for version in range(34)}
    for version, request in asked.items():
        sampler.start(version, request, version)
    found: dict[Any, Any] = {}
    together = 0
    while sampler.writes():
        found.update(sampler.step())
        assert len(batches(sampler)) <= 1
        together = max(together, len({answer.version for answer in sampler._batching._written()}))
    assert together > row_adapters.FEW
    for version, request in asked.items():
        same(found[version], by(sampler, version, request))


def test_more_versions_than_have_slots_wait_for_one(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_adapters, "BYTES", 0)
    load(sampler, range(1, 8))
    asked = {version: ask(version % 3, max_tokens=4, seed=version) for version in range(1, 8)}
    for version, request in asked.items():
        sampler.start(version, request, version)
    found: dict[Any, Any] = {}
    while sampler.writes():
        found.update(sampler.step())
        assert len({answer.version for answer in sampler._batching._written()}) < row_adapters._LEAST
    for version, request in asked.items():
        same(found[version], by(sampler, version, request))


def test_one_that_was_dropped_comes_back_as_it_was(
    sampler: Any, directories: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {version: ask(2, max_tokens=6) for version in (1, 2)}
    alone = {version: by(sampler, version, request) for version, request in asked.items()}
    monkeypatch.setattr(residency, "BYTES", 1)
    sampler.load_adapter(2, directories[1])
    assert sampler.lacking_adapter(1) == directories[0]
    sampler.start(1, asked[1], 1)
    assert sampler.lacking_adapter(2) == directories[1]
    found = dict(sampler.step())
    sampler.start(2, asked[2], 2)
    assert sampler.lacking_adapter(1) is None, "it is writing"
    found.update(rest(sampler))
    for version, expected in alone.items():
        same(found[version], expected)
    sampler.activate(1)
    sampler.load_adapter(2, directories[1])
    assert sampler.lacking_adapter(1) is None, "it is active"
    sampler.activate(0)


def test_one_whose_files_are_others_now_does_not_come_back(
    sampler: Any, directories: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes((directories[0] / name).read_bytes())
    sampler.load_adapter(3, tmp_path)
    monkeypatch.setattr(residency, "BYTES", 1)
    sampler.load_adapter(2, directories[1])
    weights = tmp_path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-40])
    with pytest.raises(AdapterError, match="cannot be read"):
        sampler.start("it", ask(1), 3)
    assert not sampler.writes()


def test_where_each_pass_is_of_one_version_a_few_stay_on_the_device(
    sampler: Any, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = {version: by(sampler, version, ask(1)) for version in (1, 2)}
    monkeypatch.setattr(backend._model, "mixes_versions", False)
    fresh_one = backend.sampler()
    fresh_one._versions = sampler._versions
    made: list[int] = []
    prepare = backend._model.prepare
    monkeypatch.setattr(backend._model, "prepare", lambda one: made.append(id(one)) or prepare(one))
    for version in (1, 2):
        fresh_one.start(version, ask(1), version)
    found = dict(rest(fresh_one))
    for version, expected in alone.items():
        same(found[version], expected)
    assert len(made) == 2, "one for each, however many tokens"


def test_tokens_under_each_other_find_their_rows() -> None:
    """Some layers get `(B · T, in)`."""
    require("peft")
    torch = require("torch")
    from goodbot_training.backends.row_adapters import Pass
    from goodbot_training.backends.torch.lora import _added

    torch.manual_seed(0)
    a, b, x = torch.randn(7, 2, 6), torch.randn(7, 2, 10), torch.randn(3, 4, 6)
    slots = torch.tensor([5, 0, 3], dtype=torch.int32)
    now = Pass(pairs={"x": (a, b)}, slots=slots)
    expected = torch.einsum("bti,bri,bro->bto", x, a[[5, 0, 3]], b[[5, 0, 3]])
    for way in (x, x.view(12, 6)):
        found = _added(torch.zeros(*way.shape[:-1], 10), way, "x", now)
        torch.testing.assert_close(found.view(3, 4, 10), expected)
    with pytest.raises(ValueError, match="mixed"):
        _added(torch.zeros(4, 3, 10), x.mT.reshape(4, 3, 6), "x", now)
