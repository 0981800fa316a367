"""The torch backend and its training loop, top to bottom."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from goodbot.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.errors import TrainingError

from goodbot_training.backends.base import ModelBackend
from goodbot_training.backends.packing import micro_batches, pack
from goodbot_training.backends.torch.model import TorchModel


class TorchBackend(ModelBackend):
    """transformers and peft on CUDA or a CPU."""

    name = "torch"
    _model: TorchModel

    def _load_model(self, directory: Path, config: dict[str, Any], rank: int) -> TorchModel:
        torch.manual_seed(self._seed)
        return TorchModel(directory, config, rank)

    def train(
        self, batches: Iterator[TrainingBatch], settings: OptimizerSettings, loss: LossFunction
    ) -> Iterator[StepStats]:
        """One AdamW step a batch. Raises TrainingError(kind="nan") before a bad step is taken."""
        model = self._model
        model.enabled = True
        parameters = model.parameters()
        optimizer = torch.optim.AdamW(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        taken = 0
        for batch in batches:
            if not batch.advantages.any():
                # AdamW turns the rounding noise of a zero gradient into full-size steps.
                yield StepStats.nothing()
                continue
            optimizer.zero_grad(set_to_none=True)
            sums = self._backward(batch, settings, loss)
            norm = torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            names = sorted(sums)
            numbers = torch.stack([norm, *(sums[name] for name in names)]).tolist()  # the one sync
            if not all(map(math.isfinite, numbers)):
                raise TrainingError("The loss or its gradient is not a finite number.", kind="nan")
            taken += 1
            warm = min(1.0, taken / settings.warmup_steps) if settings.warmup_steps else 1.0
            optimizer.param_groups[0]["lr"] = settings.learning_rate * warm
            optimizer.step()
            yield StepStats.of(batch, dict(zip(names, numbers[1:], strict=True)), numbers[0])

    def _backward(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> dict[str, torch.Tensor]:
        """The statistics of the batch's parts, added up, as are their gradients; no host sync."""
        model, sums = self._model, dict[str, torch.Tensor]()
        for part in micro_batches(batch, settings.tokens_per_forward):
            packed = pack(part.sequences, vocabulary=model.vocabulary)
            policy = model.logprobs(packed, part.temperature)
            sampling, reference, advantages, mask = (
                torch.as_tensor(array, device=model.device)
                for array in (
                    part.sampling_logprobs,
                    part.reference_logprobs,
                    part.advantages,
                    part.mask,
                )
            )
            value: Any
            value, statistics = loss(
                torch, policy, sampling, reference, advantages, mask, part.normalizer
            )
            value.backward()
            found: dict[str, Any] = {"loss": value.detach(), **statistics}
            sums = {name: sums.get(name, 0.0) + number for name, number in found.items()}
        return sums
