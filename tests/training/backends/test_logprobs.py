# SPDX-License-Identifier: Apache-2.0
"""Chunked log-probs, one-node LoRA, recomputed layers, 4-bit bases: cheaper, and the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot.base.errors import TrainingError
from goodbot_training.backends.head import Bend, bends
from goodbot_training.backends.packing import pack

from tests.support import require
from tests.training.backends.families import FAMILIES, make, save
from tests.training.oracle import batch, objective

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWERS = ("Paris.", "Arr matey! It be Paris.", "Zwölf Äpfel 👍", "I do not know, I am sorry.")
BENDS = (Bend(), Bend(scale=0.25), Bend(cap=5.0), Bend(scale=0.5, cap=5.0))


def load(name: str, model: Path, **options: Any) -> Any:
    if name == "torch":
        require("torch"), require("peft")
        from goodbot_training.backends.torch.trainer import TorchBackend as Backend
    else:
        require("mlx_lm")
        from goodbot_training.backends.mlx.trainer import MlxBackend as Backend
    backend: Any = Backend()
    backend.load(model, lora=LoraSettings(rank=4, alpha=8.0), seed=1, **options)
    return backend


def rated(backend: Any) -> Any:
    turns = [backend.tokenize(QUESTION, answer) for answer in ANSWERS]
    base = backend.logprobs(turns, temperature=[0.8] * len(turns), adapter=False)
    return batch(turns, base, base)


def scores(backend: Any) -> list[Any]:
    turns = [backend.tokenize(QUESTION, answer) for answer in ANSWERS]
    return backend.logprobs(turns, temperature=[0.8] * len(turns), adapter=True)


def train(backend: Any, data: Any, steps: int = 3, **settings: Any) -> list[Any]:
    optimizer = OptimizerSettings(learning_rate=1e-3, **settings)
    return list(backend.train(iter([data] * steps), optimizer, objective("scale")))


@pytest.mark.parametrize("bend", BENDS)
def test_torch_slopes_are_those_of_plain_autograd(bend: Bend, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = require("torch")
    from goodbot_training.backends.torch import logprobs

    monkeypatch.setattr(logprobs, "CHUNK", 3 * 50)  # three rows at a time, the last chunk one
    torch.manual_seed(0)
    linear = torch.nn.Linear(16, 50).requires_grad_(False)
    head = logprobs.Head(linear=linear, bend=bend)
    hidden = (3 * torch.randn(7, 16)).requires_grad_()
    targets, heat, upstream = torch.randint(50, (7,)), torch.rand(7) + 0.5, torch.randn(7)
    logits = linear(hidden) * bend.scale
    if bend.cap:
        logits = bend.cap * torch.tanh(logits / bend.cap)
    plain = (logits / heat[:, None]).log_softmax(-1)[torch.arange(7), targets]
    (expected,) = torch.autograd.grad(plain, hidden, upstream)
    ours = logprobs.token_logprobs(head, hidden, targets, heat)
    (found,) = torch.autograd.grad(ours, hidden, upstream)
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bend", BENDS)
def test_mlx_slopes_are_those_of_plain_autograd(bend: Bend, monkeypatch: pytest.MonkeyPatch) -> None:
    mx = require("mlx.core")
    from goodbot_training.backends.mlx import logprobs

    monkeypatch.setattr(logprobs, "CHUNK", 3 * 50)
    mx.random.seed(0)
    weight, targets = mx.random.normal((50, 16)), mx.array([1, 2, 3, 4, 5, 6, 49])
    heat, upstream = mx.random.uniform(0.5, 1.5, (7,)), mx.random.normal((7,))
    head = logprobs.Head(linear=lambda x: x @ weight.T, bend=bend, vocabulary=50)

    def plain(hidden: Any) -> Any:
        chosen = logprobs.chosen_logprobs(head.logits(hidden), targets, heat)
        return (chosen * upstream).sum()

    def ours(hidden: Any) -> Any:
        return (logprobs.token_logprobs(head, hidden, targets, heat) * upstream).sum()

    hidden = mx.random.normal((7, 16))
    for function in (lambda f: f(hidden), lambda f: mx.grad(f)(hidden)):
        np.testing.assert_allclose(function(ours), function(plain), rtol=1e-4, atol=1e-5)


def test_what_bends_logits_is_read_from_the_config() -> None:
    assert bends({}) == [Bend()]
    assert bends({"logits_scaling": 8.0})[-1] == Bend(scale=0.125)
    assert bends({"logit_scale": 0.0625})[-1] == Bend(scale=0.0625)
    assert bends({"text_config": {"final_logit_softcapping": 30.0}})[-1] == Bend(cap=30.0)


@pytest.mark.parametrize(
    ("family", "own", "expected"),
    [
        ("gemma2", {"final_logit_softcapping": 0.5}, Bend(cap=0.5)),
        ("granite", {"logits_scaling": 8.0}, Bend(scale=0.125)),
    ],
)
def test_families_that_bend_logits_need_no_whole_logits(
    family: str, own: dict[str, Any], expected: Bend, tmp_path: Path
) -> None:
    from dataclasses import replace

    torch = require("torch")
    from goodbot_training.backends.torch.model import TorchModel

    require("mlx_lm")
    from goodbot_training.backends.mlx.model import MlxModel

    known = FAMILIES[family]
    changed = replace(known, own=known.own | own)
    plain = make(changed)
    config = save(plain, changed, tmp_path)
    ids = tuple(range(3, 15))
    packed = pack([turn(ids[:4], ids[4:])], vocabulary=320)
    with torch.no_grad():
        rows = plain(torch.tensor([ids])).logits[0, 3:-1].log_softmax(-1)
    right = rows[torch.arange(8), torch.tensor(ids[4:])].numpy()
    for kind in (TorchModel, MlxModel):
        model: Any = kind(tmp_path, config, 2, None)
        assert model._head.bend == expected
        np.testing.assert_allclose(model.scores(packed, [1.0])[0], right, atol=1e-4)


def turn(prompt: tuple[int, ...], response: tuple[int, ...]) -> Any:
    from goodbot.api.sampler import TokenizedTurn

    return TokenizedTurn(prompt=prompt, response=response)


def test_our_projection_is_pefts(random_model: Path) -> None:
    torch = require("torch")
    backend = load("torch", random_model)
    data = rated(backend)
    train(backend, data)

    def gradients() -> list[Any]:
        for parameter in backend._model.parameters():
            parameter.grad = None
        backend._backward(data, OptimizerSettings(), objective("scale"))
        return [parameter.grad for parameter in backend._model.parameters()]

    ours = gradients()
    for layer in backend._model._layers.values():
        assert layer.__dict__.pop("forward")
    for one, other in zip(ours, gradients(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))


@pytest.mark.parametrize("name", ["torch", "mlx"])
def test_recomputed_layers_give_the_same_steps(name: str, random_model: Path) -> None:
    kept, light = (load(name, random_model) for _ in range(2))
    expected = train(kept, rated(kept), recompute=False)
    found = train(light, rated(light), recompute=True)
    for one, other in zip(expected, found, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert other.grad_norm == pytest.approx(one.grad_norm, rel=1e-4)
    again = train(light, rated(light), steps=1, recompute=False)  # and it can be turned off again
    assert again[0].grad_norm > 0


def test_recomputing_keeps_less(random_model: Path) -> None:
    """Counted in what autograd holds for the backward pass."""
    torch = require("torch")
    backend = load("torch", random_model)
    model, held = backend._model, dict[bool, int]()
    packed = pack(rated(backend).sequences, vocabulary=model.vocabulary)
    model.enabled = True
    for wanted in (False, True):
        model.recompute(wanted)
        sizes: list[int] = []

        def keep(tensor: Any, sizes: list[int] = sizes) -> Any:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model.logprobs(packed, [1.0] * len(ANSWERS))
        held[wanted] = sum(sizes)
    assert held[True] < 0.5 * held[False]


def test_mlx_learns_on_a_4_bit_base_what_the_full_one_can_use(random_model: Path, tmp_path: Path) -> None:
    four_bits("mlx", random_model, tmp_path)


@pytest.mark.filterwarnings("ignore")  # bitsandbytes' own
def test_torch_learns_on_a_4_bit_base_what_the_full_one_can_use(random_model: Path, tmp_path: Path) -> None:
    require("bitsandbytes"), require("accelerate")
    four_bits("torch", random_model, tmp_path)


def four_bits(name: str, model: Path, tmp_path: Path) -> None:
    full, small = load(name, model), load(name, model, bits=4)
    assert small._model.shapes == full._model.shapes
    off = np.abs(np.concatenate(scores(full)) - np.concatenate(scores(small))).mean()
    assert 1e-3 < off < 1.0, "quantized, and still the same model"
    before = scores(full)
    data = rated(small)
    train(small, data, steps=6)
    small.save_adapter(tmp_path / "a")
    full.load_adapter(tmp_path / "a")
    moved = [(b - a).sum() for a, b in zip(before, scores(full), strict=True)]
    for change, advantage in zip(moved, data.advantages, strict=True):
        assert change * advantage > 0, "the full base moves the way that the 4-bit one was taught"


def test_other_sizes_of_a_base_are_refused(random_model: Path) -> None:
    with pytest.raises(TrainingError, match="4 bits"):
        load("torch", random_model, bits=3)


def test_without_bitsandbytes_it_says_what_to_install(
    random_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("torch"), require("peft")
    from goodbot_training.backends.torch import loading

    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(TrainingError, match=r"bitsandbytes>="):
        load("torch", random_model, bits=4)
