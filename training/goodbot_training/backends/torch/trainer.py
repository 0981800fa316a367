# SPDX-License-Identifier: Apache-2.0
"""The torch backend and its training loop, top to bottom."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.base.errors import TrainingError

from goodbot_training.backends.base import ModelBackend
from goodbot_training.backends.pace import StepSize
from goodbot_training.backends.packing import micro_batches, pack
from goodbot_training.backends.scoring import OVERHEAD
from goodbot_training.backends.state import damaged, read_state, write_state
from goodbot_training.backends.sums import count
from goodbot_training.backends.torch.model import TorchModel
from goodbot_training.backends.torch.sharing import Share
from goodbot_training.backends.torch.still import TorchStill

_LAUNCH = 1e-3
"""Seconds that Python takes for one projection, forward and backward, and for what lies beside it."""
_RATE = 3e14
"""FLOP/s of a large GPU in bf16; a smaller one waits less for Python."""


class TorchBackend(ModelBackend):
    """transformers and peft on CUDA or a CPU."""

    name = "torch"
    share: Share | None = None
    """What this process does of each step; None: all of it."""
    _model: TorchModel

    _optimizer: torch.optim.AdamW | None = None
    _pace: StepSize
    """Of the `train` that is under way."""

    def _load_model(self, directory: Path, config: dict[str, Any], rank: int, bits: int | None) -> TorchModel:
        torch.manual_seed(self._seed)
        return TorchModel(directory, config, rank, bits)

    @property
    def overhead(self) -> int:
        """See `goodbot.api.backend.TellsOverhead`. A GPU waits for Python, whatever a pass holds."""
        model = self._model
        if model.device.type != "cuda":
            return OVERHEAD
        return max(OVERHEAD, int(len(model.shapes) * _LAUNCH * _RATE / (4 * self.parameters)))

    def optimize_for_inference(self) -> None:
        """See `goodbot.api.backend.OptimizesForInference`."""
        self._model.optimize_for_inference()

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """One AdamW step a batch. Raises TrainingError(kind="nan") before a bad step is taken."""
        parameters, optimizer = self._model.parameters(), self._fresh_optimizer(settings)
        if checkpoint is not None:
            self._restore(optimizer, checkpoint)
        still = TorchStill(self._model, self._still)
        for batch in batches:
            if not batch.teaches:
                # AdamW turns the rounding noise of a zero gradient into full-size steps.
                yield StepStats.nothing()
                continue
            optimizer.zero_grad(set_to_none=True)
            sums = self._together(batch, settings, loss)
            still.silence()
            norm = torch.nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            names = sorted(sums)
            numbers = torch.stack([norm, *(sums[name] for name in names)]).tolist()  # the one sync
            if not all(map(math.isfinite, numbers)):
                raise TrainingError("The loss or its gradient is not a finite number.", kind="nan")
            rate, epsilon = self._pace.step(numbers[0])
            for group in optimizer.param_groups:
                group |= {"lr": group["share"] * rate, "eps": epsilon}
            optimizer.step()
            still.put_back()
            yield StepStats.of(batch, dict(zip(names, numbers[1:], strict=True)), numbers[0])

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """A step that is not taken; see `TrainingBackend.examine`."""
        model = self._model
        model.enabled = True
        parameters = model.parameters()
        for parameter in parameters:
            parameter.grad = None
        sums = self._backward(batch, settings, loss)
        TorchStill(model, self._still).silence()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        for parameter in parameters:
            parameter.grad = None
        found = {name: float(value) for name, value in sums.items()}
        return StepStats.of(batch, found, float(norm))

    def save_checkpoint(self, directory: Path) -> None:
        """Weights, moments, step counts and random state, each an array by name."""
        if self._optimizer is None:
            raise TrainingError("There is no training under way to make a checkpoint of.")
        arrays = {
            f"weight.{index}": parameter.detach() for index, parameter in enumerate(self._model.parameters())
        }
        for index, moments in self._optimizer.state_dict()["state"].items():
            arrays |= {f"state.{index}.{name}": value for name, value in moments.items()}
        arrays |= {
            f"pace.{name}": torch.tensor(value, dtype=torch.float64)
            for name, value in self._pace.state.items()
        }
        arrays["random"] = torch.get_rng_state()
        if self._model.device.type == "cuda":
            arrays["random.cuda"] = torch.cuda.get_rng_state(self._model.device)
        write_state(directory, {name: array.cpu().numpy() for name, array in arrays.items()})

    def _fresh_optimizer(self, settings: OptimizerSettings) -> torch.optim.AdamW:
        """An optimizer before its first step, and how far it goes."""
        model = self._model
        model.enabled = True
        trained = sum(p.numel() for p in model.parameters()) - count(model.shapes, self._still)
        self._pace = StepSize(settings=settings, weights=trained)
        groups = model.groups(settings.attention_rate)
        self._optimizer = torch.optim.AdamW(groups, weight_decay=self._pace.weight_decay)
        return self._optimizer

    @torch.no_grad()
    def _take_weights(self, checkpoint: Path) -> dict[str, torch.Tensor]:
        """Put a checkpoint's weights in place; returns what else it holds. Raises TrainingError."""
        # Copies: torch chooses its kernels by how memory is aligned.
        arrays = {name: torch.tensor(array) for name, array in read_state(checkpoint).items()}
        try:
            for index, parameter in enumerate(self._model.parameters()):
                parameter.copy_(arrays.pop(f"weight.{index}"))
        except (KeyError, RuntimeError) as error:
            raise damaged(checkpoint) from error
        return arrays

    @torch.no_grad()
    def _restore(self, optimizer: torch.optim.AdamW, checkpoint: Path) -> None:
        arrays = self._take_weights(checkpoint)
        try:
            self._pace.state = {n: float(arrays.pop(f"pace.{n}")) for n in self._pace.state}
            torch.set_rng_state(arrays.pop("random"))
            random = arrays.pop("random.cuda", None)
            if random is not None and self._model.device.type == "cuda":
                torch.cuda.set_rng_state(random, self._model.device)
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for key, array in arrays.items():
                _, index, name = key.split(".", 2)
                moments.setdefault(int(index), {})[name] = array
            optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        except (KeyError, ValueError, RuntimeError) as error:
            raise damaged(checkpoint) from error

    def _together(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> dict[str, torch.Tensor]:
        """`_backward`, by all workers where there are several: the gradients are the sum of theirs."""
        if self.share is None:
            return self._backward(batch, settings, loss)
        rows = self.share.rows(batch)
        sums = {} if rows is None else self._backward(rows, settings, loss)
        return self.share.added(self._model.parameters(), sums)

    def _backward(
        self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction
    ) -> dict[str, torch.Tensor]:
        """The statistics of the batch's parts, added up, as are their gradients; no host sync."""
        model, sums = self._model, dict[str, torch.Tensor]()
        model.recompute(settings.recompute)
        for part in micro_batches(batch, settings.tokens_per_forward, self.overhead):
            packed = pack(part.sequences, vocabulary=model.vocabulary)
            policy = model.logprobs(packed, part.temperature)
            sampling, reference, advantages, mask = (
                model.upload(array)
                for array in (part.sampling_logprobs, part.reference_logprobs, part.advantages, part.mask)
            )
            value: Any
            words = {} if part.hindsight is None else {"hindsight": model.upload(part.hindsight)}
            value, statistics = loss(
                torch, policy, sampling, reference, advantages, mask, part.normalizer, **words
            )
            value.backward()
            found: dict[str, Any] = {"loss": value.detach(), **statistics}
            sums = {name: sums.get(name, 0.0) + number for name, number in found.items()}
        return sums
