# SPDX-License-Identifier: Apache-2.0
"""The MLX backend and its training loop, top to bottom."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.base.errors import TrainingError

from goodbot_training.backends.base import ModelBackend
from goodbot_training.backends.layout import lies_in
from goodbot_training.backends.mlx.model import MlxModel  # first: it sets MLX's environment
from goodbot_training.backends.mlx.still import MlxStill
from goodbot_training.backends.pace import StepSize
from goodbot_training.backends.packing import micro_batches, pack
from goodbot_training.backends.state import damaged, read_state, write_state
from goodbot_training.backends.sums import count

# isort: split
import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx import optimizers
from mlx.utils import tree_flatten, tree_map, tree_unflatten


class MlxBackend(ModelBackend):
    """mlx-lm on an Apple GPU or a CPU."""

    name = "mlx"
    _model: MlxModel

    _optimizer: optimizers.MultiOptimizer | None = None
    _pace: StepSize
    """Of the `train` that is under way."""

    def _load_model(self, directory: Path, config: dict[str, Any], rank: int, bits: int | None) -> MlxModel:
        mx.random.seed(self._seed)
        return MlxModel(directory, config, rank, bits)

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """One AdamW step a batch. Raises TrainingError(kind="nan") before a bad step is taken."""
        causal = self._model.causal
        self._model.enabled = True
        weights: Any = tree_flatten(causal.trainable_parameters())
        trained = sum(array.size for _, array in weights) - count(self._model.shapes, self._still)
        pace = StepSize(settings=settings, weights=trained)
        shares = (settings.attention_rate, 1.0)
        # Without bias_correction MLX's AdamW is another optimizer than torch's.
        groups = [optimizers.AdamW(0.0, weight_decay=pace.weight_decay, bias_correction=True) for _ in shares]
        optimizer = optimizers.MultiOptimizer(groups, [lambda path, _: lies_in(path, self._model.attention)])
        self._optimizer, self._pace = optimizer, pace
        if checkpoint is not None:
            self._restore(optimizer, checkpoint)
        still = MlxStill(self._model, self._still)
        for batch in batches:
            if not batch.teaches:
                # AdamW turns the rounding noise of a zero gradient into full-size steps.
                yield StepStats.nothing()
                continue
            sums, gradients = self._gradients(batch, settings, loss)
            gradients = still.silenced(gradients)
            gradients, norm = optimizers.clip_grad_norm(gradients, settings.max_grad_norm)
            names = sorted(sums)
            numbers: Any = mx.stack([norm, *(sums[name] for name in names)]).tolist()  # the one sync
            if not all(map(math.isfinite, numbers)):
                raise TrainingError("The loss or its gradient is not a finite number.", kind="nan")
            rate, epsilon = pace.step(numbers[0])
            for group, share in zip(groups, shares, strict=True):
                group.learning_rate, group.eps = share * rate, epsilon
            optimizer.update(causal, gradients)
            still.put_back()
            mx.async_eval(causal.trainable_parameters(), optimizer.state)
            yield StepStats.of(batch, dict(zip(names, numbers[1:], strict=True)), numbers[0])

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """A step that is not taken; see `TrainingBackend.examine`."""
        self._model.enabled = True
        sums, gradients = self._gradients(batch, settings, loss)
        gradients = MlxStill(self._model, self._still).silenced(gradients)
        _, norm = optimizers.clip_grad_norm(gradients, math.inf)
        names = sorted(sums)
        numbers: Any = mx.stack([norm, *(sums[name] for name in names)]).tolist()
        return StepStats.of(batch, dict(zip(names, numbers[1:], strict=True)), numbers[0])

    def save_checkpoint(self, directory: Path) -> None:
        """Weights, moments, step counts and random state, each an array by name."""
        if self._optimizer is None:
            raise TrainingError("There is no training under way to make a checkpoint of.")
        state: Any = mx.random.state
        trees = {
            "weight": self._model.causal.trainable_parameters(),
            "state": self._optimizer.state,
            "random": list(state),
        }
        arrays = {name: np.array(value) for name, value in tree_flatten(trees)}
        arrays |= {f"pace.{name}": np.array(value) for name, value in self._pace.state.items()}
        write_state(directory, arrays)

    def _restore(self, optimizer: optimizers.MultiOptimizer, checkpoint: Path) -> None:
        arrays = read_state(checkpoint)
        try:
            self._pace.state = {n: float(arrays.pop(f"pace.{n}")) for n in self._pace.state}
            found = [(name, mx.array(value)) for name, value in arrays.items()]
            trees: Any = tree_unflatten(found)
            self._model.causal.update(trees["weight"])
            optimizer.state = trees["state"]
            high, low = (int(word) for word in trees["random"][0].tolist())
            mx.random.seed(high << 32 | low)  # a seed is the state that it leads to
            mx.eval(self._model.causal.trainable_parameters(), optimizer.state)
        except (KeyError, ValueError, TypeError) as error:
            raise damaged(checkpoint) from error

    def _gradients(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> tuple[dict[str, mx.array], Any]:
        """The statistics and gradients of the batch's parts, added up."""
        model = self._model

        def objective(part: TrainingBatch) -> Any:
            packed = pack(part.sequences, vocabulary=model.vocabulary)
            words = {} if part.hindsight is None else {"hindsight": mx.array(part.hindsight)}
            return loss(
                mx,
                model.logprobs(packed, part.temperature),
                mx.array(part.sampling_logprobs),
                mx.array(part.reference_logprobs),
                mx.array(part.advantages),
                mx.array(part.mask),
                part.normalizer,
                **words,
            )

        gradient_of = nn.value_and_grad(model.causal, objective)
        sums: dict[str, mx.array] = {}
        total: Any = None
        for part in micro_batches(batch, settings.tokens_per_forward):
            with recomputing(model.causal.layers) if settings.recompute else nullcontext():
                (value, statistics), gradients = gradient_of(part)
            found = {"loss": value, **statistics}
            sums = {name: sums[name] + x if name in sums else x for name, x in found.items()}
            total = gradients if total is None else tree_map(mx.add, total, gradients)
            mx.async_eval(sums, total)  # begins, and so frees this part's activations in time
        return sums, total


@contextmanager
def recomputing(layers: Sequence[Any]) -> Iterator[None]:
    """While it lasts, a layer keeps its input only, and computes the rest again for the gradient."""
    calls: dict[Any, Any] = {type(layer): type(layer).__call__ for layer in layers}

    def light(call: Any) -> Any:
        def forward(layer: Any, *arguments: Any, **keywords: Any) -> Any:
            def inner(weights: Any, *inputs: Any, **named: Any) -> Any:
                layer.update(weights)
                return call(layer, *inputs, **named)

            return mx.checkpoint(inner)(layer.trainable_parameters(), *arguments, **keywords)

        return forward

    try:
        for kind, call in calls.items():
            kind.__call__ = light(call)
        yield
    finally:
        for kind, call in calls.items():
            kind.__call__ = call
