# SPDX-License-Identifier: Apache-2.0
"""Matrices laid out for answers: the same model, in less time, and without the plain ones."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, OptimizesForInference
from goodbot.api.sampler import SampleRequest

from tests.support import require
from tests.training.backends.families import FAMILIES, make, save
from tests.training.conftest import write_tokenizer

require("torch")
require("peft")
import torch  # noqa: E402
from goodbot_training.backends.adapters import fresh, write_adapter  # noqa: E402
from goodbot_training.backends.torch import prepacked  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from torch import nn  # noqa: E402

PACKS = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch is built without oneDNN"
)
MESSAGES = [{"role": "user", "content": "How are you?"}]
KINDS = {
    "llama": "untied",
    "qwen3": "a head that is the embedding",
    "qwen2": "with biases",
    "qwen3 moe": "one version a pass",
    "falcon h1": "a hybrid",
}


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepacked, "_LEAST", 0)


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    family = FAMILIES[request.param]
    save(make(family), family, tmp_path / "model")
    write_tokenizer(tmp_path / "model")
    return tmp_path / "model"


def loaded(model: Path) -> TorchBackend:
    backend = TorchBackend()
    backend.load(model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return backend


def answers(backend: TorchBackend, adapters: list[Path]) -> Iterator[Any]:
    """By the base and by two versions, together and one by one, and how they would begin."""
    sampler = backend.sampler()
    for version, directory in enumerate(adapters, start=1):
        sampler.load_adapter(version, directory)
    asked = [
        SampleRequest(messages=MESSAGES, max_tokens=9, seed=seed, temperature=heat)
        for seed, heat in enumerate((1.0, 0.0, 0.7))
    ]
    for version, request in enumerate(asked):
        sampler.start(version, request, version)
    while sampler.writes():
        yield from (answer for _, answer in sorted(sampler.step()))
    for version in range(3):
        sampler.activate(version)
        yield sampler.sample(asked[0])
        yield sampler.first_tokens(MESSAGES, version=version, top=5)


def adapter(backend: TorchBackend, directory: Path, seed: int) -> Path:
    shapes, experts = backend._model.shapes, backend._model.experts
    weights = fresh(shapes, rank=4, alpha=8.0, seed=seed, expert_rank=experts.rank(4))
    random = np.random.default_rng(seed)
    pairs = {
        path: (a, random.standard_normal(b.shape).astype(np.float32))
        for path, (a, b) in weights.pairs.items()
    }
    write_adapter(directory, replace(weights, pairs=pairs), base_model="random")
    return directory


@PACKS
def test_answers_are_the_same(model: Path, tmp_path: Path) -> None:
    backend = loaded(model)
    adapters = [adapter(backend, tmp_path / str(seed), seed) for seed in (1, 2)]
    before = list(answers(backend, adapters))
    assert isinstance(backend, OptimizesForInference)
    backend.optimize_for_inference()
    for found, expected in zip(answers(backend, adapters), before, strict=True):
        if isinstance(expected, dict):
            assert found == pytest.approx(expected, abs=1e-4)
            continue
        assert (found.tokens, found.text, found.finish) == (expected.tokens, expected.text, expected.finish)
        np.testing.assert_allclose(found.logprobs, expected.logprobs, atol=1e-4)


@PACKS
def test_only_the_embedding_stays(model: Path) -> None:
    """All else that is multiplied with is not there twice."""
    backend = loaded(model)
    turn = backend.tokenize(MESSAGES, "Well.")
    (before,) = backend.logprobs([turn], temperature=[1.0], adapter=False)
    backend.optimize_for_inference()
    causal = backend._model._causal
    given_up = [p for p in causal.parameters() if p.device.type == "meta"]
    packed = [layer for layer in backend._model._layers.values() if not getattr(layer.forward, "_trains", 1)]
    tied = causal.get_output_embeddings().weight is causal.get_input_embeddings().weight
    assert len(given_up) == len(packed) + (not tied) > 1
    assert causal.get_input_embeddings().weight.device.type == "cpu"
    (after,) = backend.logprobs([turn], temperature=[1.0], adapter=False)
    np.testing.assert_allclose(after, before, atol=1e-4)


@PACKS
def test_a_view_over_rows_that_lie_apart() -> None:
    linear = nn.Linear(24, 40)
    product = prepacked.prepacked(linear)
    assert product
    x = torch.randn(3, 5, 24)
    for view in (x, x[:, -1], x.transpose(0, 1), x[:0]):
        torch.testing.assert_close(product(view), linear(view), rtol=1e-4, atol=1e-4)


_PACKS_MANY = """
import re, torch
from pathlib import Path
from torch import nn
from goodbot_training.backends.torch.prepacked import give_up, prepacked

def held():
    return 1024 * int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

del (large := [nn.Linear(576, 9216)])[:]  # from now on glibc maps nothing of this size by itself
prepacked(nn.Linear(576, 576))
layers = [nn.Linear(576, 576, bias=False) for _ in range(100)]
products, before = [], held()
for layer in layers:
    products.append(prepacked(layer))
    give_up(layer)
assert all(products)
print((held() - before) / (100 * 576 * 576 * 4))
"""


@PACKS
@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_what_is_given_up_goes_back_to_the_system() -> None:
    """In a process of its own, whose memory nobody else has cut up."""
    ran = subprocess.run([sys.executable, "-c", _PACKS_MANY], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 0.15, "of the matrices' own size"


def test_what_cannot_be_packed_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    linear = nn.Linear(24, 40)
    assert prepacked.prepacked(linear.to(torch.bfloat16)) is None
    assert prepacked.prepacked(nn.Linear(24, 40, device="meta")) is None
    monkeypatch.setattr(prepacked, "_LEAST", 24 * 40 + 1)
    assert prepacked.prepacked(nn.Linear(24, 40)) is None


@pytest.mark.parametrize("fault", ["missing", "refuses", "wrong"])
def test_without_onednn_it_stays_plain(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    class Operators:
        def _reorder_linear_weight(self, weight: Any, rows: int) -> Any:
            if fault == "missing":
                raise AttributeError("'_OpNamespace' 'mkldnn' object has no such attribute")
            if fault == "refuses":
                raise RuntimeError("mkldnn is not available")
            return weight

        class _linear_pointwise:  # noqa: N801  the operator's name
            @staticmethod
            def default(x: Any, weight: Any, *_: Any) -> Any:
                return 1.1 * nn.functional.linear(x, weight)

    monkeypatch.setattr(torch.ops, "mkldnn", Operators())
    assert prepacked.prepacked(nn.Linear(24, 40, bias=False)) is None


@PACKS
def test_a_backend_that_is_loaded_again_trains(model: Path) -> None:
    backend = loaded(model)
    backend.optimize_for_inference()
    backend.load(model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    assert all(p.device.type == "cpu" for p in backend._model._causal.parameters())
