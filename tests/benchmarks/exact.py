# SPDX-License-Identifier: Apache-2.0
"""Whether a contender computes what it should: the loss and the LoRA gradient of one batch beside fp32 here.

On two layers as wide as the model's, with the same weights (those of bf16, which fp32 has, too), the same
adapter and the same eight ratings. `reference` runs on a processor and writes what it found; `off` is how
far another computation is from that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.shapes import Ratings
from tests.benchmarks.tuning import tuned

_LAYERS, _WORDS, _EXPERTS = 2, 4096, 16
FILE = "exact.npz"
_BUDGET = 8192


def shallow(shape: Mapping[str, Any]) -> dict[str, Any]:
    """As wide as a model and two layers deep, with few words and experts: its kernels, and no more."""
    least = {"num_hidden_layers": _LAYERS, "vocab_size": _WORDS, "num_experts": _EXPERTS}
    return {name: min(value, least[name]) if name in least else value for name, value in shape.items()}


def reference(task: Mapping[str, Any]) -> dict[str, float]:
    """Write loss, gradient and scores of the batch beside the model that `exact` names."""
    backend = _loaded(task)
    scores = _scores(backend)
    loss, gradients = _passed(backend, task, scores)
    numbered = {f"gradient.{index:04}": one for index, one in enumerate(gradients)}
    rows = {f"score.{index:04}": np.asarray(one, np.float32) for index, one in enumerate(scores)}
    arrays: dict[str, Any] = {"loss": np.asarray(loss), **numbered, **rows}
    np.savez(Path(task["exact"]) / FILE, **arrays)
    return {"loss": loss}


def off(task: Mapping[str, Any]) -> dict[str, float]:
    """`loss_off`, and `gradient_off` as a part of the largest gradient: how far from `reference`."""
    with np.load(Path(task["exact"]) / FILE) as file:
        kept = {name: file[name] for name in sorted(file.files)}
    scores = [row for name, row in kept.items() if name.startswith("score.")]
    wanted = [row for name, row in kept.items() if name.startswith("gradient.")]
    loss, gradients = _passed(_loaded(task), task, scores)
    largest = max(float(np.abs(one).max()) for one in wanted)
    apart = max(float(np.abs(a - b).max()) for a, b in zip(gradients, wanted, strict=True))
    return {"loss_off": abs(loss - float(kept["loss"])), "gradient_off": apart / largest}


def _loaded(task: Mapping[str, Any]) -> Any:
    """A backend on the shallow model, with an adapter that has an effect and is everywhere the same."""
    from goodbot_training.process.worker import make_backend

    from tests.benchmarks.contenders import LORA

    backend: Any = make_backend("goodbot_training.backends.torch.trainer:TorchBackend")
    backend.load(Path(task["exact"]), lora=LORA, seed=0, bits=task["bits"])
    weights, random = backend._model.extract(), np.random.default_rng(3)
    pairs = {
        path: tuple(random.normal(0.0, 0.02, half.shape).astype(np.float32) for half in weights.pairs[path])
        for path in sorted(weights.pairs)
    }
    backend._model.assign(backend._model.prepare(replace(weights, pairs=pairs)))
    tuned(backend, task)
    return backend


def _turns(backend: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    items = Ratings(count=8, tokens=60).items()
    return items, [backend.tokenize(item["messages"], item["response"]) for item in items]


def _scores(backend: Any) -> list[Any]:
    from goodbot_training.backends.scoring import score

    turns = _turns(backend)[1]
    return score(backend, turns, [1.0] * len(turns), adapter=False, budget=_BUDGET)


def _passed(backend: Any, task: Mapping[str, Any], scores: Sequence[Any]) -> tuple[float, list[Any]]:
    """The loss of the batch, and its gradient by each half of each adapter pair."""
    from goodbot_training.job.settings import TrainingSettings
    from goodbot_training.objectives import make_objective
    from goodbot_training.round.batches import make_batches

    from tests.benchmarks.contenders import optimizer_of, rollouts_of

    items, turns = _turns(backend)
    settings = TrainingSettings(batch_size=len(turns), max_passes=1, steps=1)
    rollouts = rollouts_of(items, turns, scores)
    batch = next(iter(make_batches(rollouts, [one.reward for one in rollouts], settings, seed=0)))
    model = backend._model
    model.enabled = True
    found = backend._backward(batch, optimizer_of(settings, task), make_objective(settings))
    grown = [(one, one.grad) for one in model.parameters()]
    gradients = [np.zeros(one.shape) if grad is None else grad.float().cpu().numpy() for one, grad in grown]
    return float(found["loss"]), gradients
