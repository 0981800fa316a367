"""The MLX backend and its training loop, top to bottom."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goodbot.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.errors import TrainingError

from goodbot_training.backends.base import ModelBackend
from goodbot_training.backends.mlx.model import MlxModel  # first: it sets MLX's environment
from goodbot_training.backends.packing import micro_batches, pack

# isort: split
import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.utils import tree_map


class MlxBackend(ModelBackend):
    """mlx-lm on an Apple GPU or a CPU."""

    name = "mlx"
    _model: MlxModel

    def _load_model(self, directory: Path, config: dict[str, Any], rank: int) -> MlxModel:
        mx.random.seed(self._seed)
        return MlxModel(directory, config, rank)

    def train(
        self, batches: Iterator[TrainingBatch], settings: OptimizerSettings, loss: LossFunction
    ) -> Iterator[StepStats]:
        """One AdamW step a batch. Raises TrainingError(kind="nan") before a bad step is taken."""
        causal = self._model.causal
        self._model.enabled = True
        # Without bias_correction MLX's AdamW is another optimizer than torch's.
        optimizer = optimizers.AdamW(
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            bias_correction=True,
        )
        taken = 0
        for batch in batches:
            if not batch.advantages.any():
                # AdamW turns the rounding noise of a zero gradient into full-size steps.
                yield StepStats.nothing()
                continue
            sums, gradients = self._gradients(batch, settings, loss)
            gradients, norm = optimizers.clip_grad_norm(gradients, settings.max_grad_norm)
            names = sorted(sums)
            numbers: Any = mx.stack(
                [norm, *(sums[name] for name in names)]
            ).tolist()  # the one sync
            if not all(map(math.isfinite, numbers)):
                raise TrainingError("The loss or its gradient is not a finite number.", kind="nan")
            taken += 1
            warm = min(1.0, taken / settings.warmup_steps) if settings.warmup_steps else 1.0
            optimizer.learning_rate = settings.learning_rate * warm
            optimizer.update(causal, gradients)
            mx.eval(causal.trainable_parameters(), optimizer.state)
            yield StepStats.of(batch, dict(zip(names, numbers[1:], strict=True)), numbers[0])

    def _gradients(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> tuple[dict[str, mx.array], Any]:
        """The statistics and gradients of the batch's parts, added up."""
        model = self._model

        def objective(part: TrainingBatch) -> Any:
            packed = pack(part.sequences, vocabulary=model.vocabulary)
            return loss(
                mx,
                model.logprobs(packed, part.temperature),
                mx.array(part.sampling_logprobs),
                mx.array(part.reference_logprobs),
                mx.array(part.advantages),
                mx.array(part.mask),
                part.normalizer,
            )

        gradient_of = nn.value_and_grad(model.causal, objective)
        sums: dict[str, mx.array] = {}
        total: Any = None
        for part in micro_batches(batch, settings.tokens_per_forward):
            (value, statistics), gradients = gradient_of(part)
            found = {"loss": value, **statistics}
            sums = {name: sums[name] + x if name in sums else x for name, x in found.items()}
            total = gradients if total is None else tree_map(mx.add, total, gradients)
            mx.eval(sums, total)  # frees this part's activations
        return sums, total
