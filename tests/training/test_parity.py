# SPDX-License-Identifier: Apache-2.0
"""torch = MLX: the same batch, the same numbers; each reads what the other wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot.api.sampler import SampleRequest
from goodbot_training.backends.adapters import read_adapter

from tests.support import require
from tests.training.oracle import VARIANTS, batch, objective

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWERS = ("Paris.", "Arr matey! It be Paris.", "Zwölf Äpfel 👍", "I do not know, I am sorry.")


@pytest.fixture(scope="module")
def backends(random_model: Path) -> dict[str, Any]:
    require("torch"), require("peft"), require("mlx_lm")
    from goodbot_training.backends.mlx.trainer import MlxBackend
    from goodbot_training.backends.torch.trainer import TorchBackend

    loaded: dict[str, Any] = {"torch": TorchBackend(), "mlx": MlxBackend()}
    for backend in loaded.values():
        backend.load(random_model, lora=LoraSettings(rank=4, alpha=8.0), seed=1)
    return loaded


@pytest.fixture(autouse=True)
def fresh(backends: dict[str, Any]) -> None:
    for backend in backends.values():
        backend.load_adapter(None)


def turns(backend: Any) -> list[Any]:
    return [backend.tokenize(QUESTION, answer) for answer in ANSWERS]


def scores(backend: Any, *, adapter: bool = True) -> list[Any]:
    return backend.logprobs(turns(backend), temperature=[0.8] * len(ANSWERS), adapter=adapter)


def one_batch(backends: dict[str, Any]) -> Any:
    base = scores(backends["torch"], adapter=False)
    return batch(turns(backends["torch"]), base, base)


def close(left: list[Any], right: list[Any], *, atol: float) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def test_both_read_the_same_model(backends: dict[str, Any]) -> None:
    assert turns(backends["torch"]) == turns(backends["mlx"])
    close(scores(backends["torch"]), scores(backends["mlx"]), atol=1e-4)


def test_both_start_from_the_same_adapter(backends: dict[str, Any], tmp_path: Path) -> None:
    for name, backend in backends.items():
        backend.save_adapter(tmp_path / name)
    one, other = ([path.read_bytes() for path in sorted((tmp_path / name).iterdir())] for name in backends)
    assert one == other


@pytest.mark.parametrize("variant", VARIANTS)
def test_loss_masks_and_gradients_agree(variant: str, backends: dict[str, Any]) -> None:
    """The gradient norm over all adapter weights is what `StepStats` reports."""
    data = one_batch(backends)
    for _ in range(2):  # a second step from weights that are not fresh, so that A has a gradient too
        settings = OptimizerSettings(learning_rate=1e-3)
        one, other = (
            next(iter(backend.train(iter([data]), settings, objective(variant))))
            for backend in backends.values()
        )
        for field in ("loss", "kl", "token_acceptance", "trajectory_acceptance", "grad_norm"):
            expected = pytest.approx(getattr(one, field), rel=1e-4, abs=1e-6)
            assert getattr(other, field) == expected, field


def test_every_gradient_agrees(backends: dict[str, Any]) -> None:
    """Element by element, from a trained adapter, by the backends' own gradient code."""
    mlx, torch = backends["mlx"], backends["torch"]
    data, settings = one_batch(backends), OptimizerSettings()
    import mlx.core as mx
    import torch as torch_module
    from mlx.utils import tree_flatten

    sums, tree = mlx._gradients(data, settings, objective("scale"))
    theirs = {name: np.array(value) for name, value in tree_flatten(tree)}
    assert mx.isfinite(sums["loss"]).item()
    model = torch._model
    model.enabled = True
    for parameter in model.parameters():
        parameter.grad = None
    torch._backward(data, settings, objective("scale"))
    assert torch_module.is_grad_enabled()
    for path, layer in model._layers.items():
        ours = layer.lora_B["default"].weight.grad.numpy().T
        scale = np.abs(ours).max()
        np.testing.assert_allclose(theirs[f"{path}.lora_b"], ours, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize(("attention_rate", "damping"), [(1.0, 0.0), (0.3, 3.0)])
def test_training_ends_at_the_same_policy(
    attention_rate: float, damping: float, backends: dict[str, Any]
) -> None:
    data = one_batch(backends)
    settings = OptimizerSettings(attention_rate=attention_rate, damping=damping)
    before = scores(backends["torch"])
    for backend in backends.values():
        list(backend.train(iter([data] * 6), settings, objective("scale")))
    moved = max(float(np.abs(a - b).max()) for a, b in zip(before, scores(backends["torch"]), strict=False))
    assert moved > 0.1
    close(scores(backends["torch"]), scores(backends["mlx"]), atol=2e-2 * moved)


@pytest.mark.parametrize("name", ["torch", "mlx"])
def test_attention_moves_by_its_own_share_of_the_rate(name: str, backends: dict[str, Any]) -> None:
    """The first step of AdamW is as long as its rate, whatever the gradient."""
    backend, before = backends[name], backends[name]._model.extract().pairs
    settings = OptimizerSettings(learning_rate=1e-3, attention_rate=0.25)
    list(backend.train(iter([one_batch(backends)]), settings, objective("scale")))
    for path, (_, b) in backend._model.extract().pairs.items():
        expected = 0.25e-3 if ".self_attn." in path else 1e-3
        step = np.abs(b - before[path][1]).max()
        assert step == pytest.approx(expected, rel=1e-2), path


@pytest.mark.parametrize("writer", ["torch", "mlx"])
def test_each_loads_the_others_adapter(writer: str, backends: dict[str, Any], tmp_path: Path) -> None:
    reader = backends["mlx" if writer == "torch" else "torch"]
    data = one_batch(backends)
    list(backends[writer].train(iter([data] * 4), OptimizerSettings(), objective("scale")))
    backends[writer].save_adapter(tmp_path)
    base = scores(reader)
    reader.load_adapter(tmp_path)
    close(scores(backends[writer]), scores(reader), atol=1e-3)
    assert max(float(np.abs(a - b).max()) for a, b in zip(base, scores(reader), strict=False)) > 0.05


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, not ours
def test_peft_itself_loads_our_adapter(backends: dict[str, Any], random_model: Path, tmp_path: Path) -> None:
    torch, peft = require("torch"), require("peft")
    from transformers import AutoModelForCausalLM

    ours = backends["torch"]
    list(ours.train(iter([one_batch(backends)] * 4), OptimizerSettings(), objective("scale")))
    ours.save_adapter(tmp_path)
    base = AutoModelForCausalLM.from_pretrained(str(random_model), dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(base, str(tmp_path)).eval()
    turn = turns(ours)[0]
    with torch.no_grad():
        logits = model(torch.tensor([[*turn.prompt, *turn.response]])).logits[0]
    rows = (logits[len(turn.prompt) - 1 : -1] / 0.8).log_softmax(-1)
    theirs = rows[torch.arange(len(turn.response)), torch.tensor(turn.response)]
    np.testing.assert_allclose(scores(ours)[0], theirs.numpy(), atol=1e-4)
    assert read_adapter(tmp_path).alpha == 8.0


def test_a_seed_names_the_same_answer_on_both(backends: dict[str, Any]) -> None:
    """Uniforms come from NumPy, so only rounding could tell the backends apart."""
    requests = [SampleRequest(messages=QUESTION, max_tokens=8, seed=seed) for seed in range(6)]
    answers = []
    for backend in backends.values():
        sampler = backend.sampler()
        sampler.activate(0)
        answers.append([answer.tokens for answer in sampler.sample_many(requests)])
    assert answers[0] == answers[1]


def test_both_tell_the_same_of_how_an_answer_may_begin(backends: dict[str, Any]) -> None:
    one, other = (backend.first_tokens(QUESTION, top=12, adapter=False) for backend in backends.values())
    assert one == pytest.approx(other, abs=1e-4)


def test_both_write_the_same_answers_side_by_side(backends: dict[str, Any]) -> None:
    """Each row joins while others are being written, padded by either framework in its own way."""
    answers: list[dict[Any, Any]] = []
    for backend in backends.values():
        sampler = backend.sampler()
        found: dict[Any, Any] = {}
        for seed in range(4):
            messages = [{"role": "user", "content": "Why? " * (1 + 3 * seed)}]
            request = SampleRequest(messages=messages, max_tokens=8, seed=seed)
            sampler.start(seed, request, 0)
            found.update(sampler.step())
        while sampler.writes():
            found.update(sampler.step())
        answers.append(found)
    for seed, answer in answers[0].items():
        assert answer.tokens == answers[1][seed].tokens
        np.testing.assert_allclose(answer.logprobs, answers[1][seed].logprobs, atol=1e-4)
