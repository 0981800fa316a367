# SPDX-License-Identifier: Apache-2.0
"""Trains on a Ray cluster, and does all else here with torch.

Each worker holds the whole base, computes its rows of a step and adds its gradients to the others'. All of
them take the same step then, by the same code as one process here. What lies in between (the state to begin
with, a checkpoint, what was learnt) is one file, `backends.state`'s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from goodbot import __version__
from goodbot.api.backend import LoraSettings, LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.base import durable

from goodbot_training.backends.asking import AskServer
from goodbot_training.backends.ray import wire
from goodbot_training.backends.ray.client import ClusterClient
from goodbot_training.backends.state import FILE, read_state
from goodbot_training.backends.torch.trainer import TorchBackend


class RayBackend(TorchBackend):
    """A base here, to score, judge and answer with; its adapter's steps are a cluster's."""

    _cluster: ClusterClient | None = None
    _model_files: list[list[Any]]
    _bits: int | None = None
    _there = _behind = False
    """Whether a cluster is training, and whether it has taken steps that the weights here have not."""

    def connect(self, ask: AskServer, remote: Mapping[str, Any]) -> None:
        """See `goodbot_training.backends.asking.ComputesElsewhere`."""
        self._cluster = ClusterClient(ask, remote)

    def load(
        self,
        model: Path,
        *,
        lora: LoraSettings,
        adapter: Path | None = None,
        seed: int = 0,
        bits: int | None = None,
    ) -> None:
        """Load the base here; see `TrainingBackend.load`."""
        self._model_files, self._bits = wire.files(model), bits
        super().load(model, lora=lora, adapter=adapter, seed=seed, bits=bits)

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter here; a cluster begins with it. Raises AdapterError."""
        super().load_adapter(directory)
        self._there = self._behind = False

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """One step of all workers a batch; after the last one the adapter is here. Raises TrainingError."""
        cluster = self._cluster
        if cluster is None:  # a plan times the round as if it were trained here
            yield from super().train(batches, settings, loss, checkpoint=checkpoint)
            return
        self._there = self._behind = False
        optimizer = self._fresh_optimizer(settings)
        if checkpoint is not None:
            self._restore(optimizer, checkpoint)
        for batch in batches:
            if not batch.teaches:
                yield StepStats.nothing()
                continue
            if not self._there:
                cluster.begin(self._about(settings), self._state())
                self._there = True
            self._behind = True
            yield cluster.step(batch)
        if self._there:
            self._catch_up()
            self._there = False
            cluster.end()

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """A step that is not taken, by the weights as they are now; see `TrainingBackend.examine`."""
        self._catch_up()
        return super().examine(batch, settings, loss)

    def save_checkpoint(self, directory: Path) -> None:
        """What the cluster's workers would begin with. Raises TrainingError where it is no state."""
        if self._cluster is None or not self._there:
            super().save_checkpoint(directory)
            return
        durable.write(directory / FILE, self._cluster.state())
        read_state(directory)

    def _about(self, settings: OptimizerSettings) -> dict[str, Any]:
        weights = self._model.extract()
        return {
            "version": __version__,
            "files": self._model_files,
            "rank": weights.rank,
            "alpha": weights.alpha,
            "seed": self._seed,
            "bits": self._bits,
            "optimizer": asdict(settings),
        }

    def _state(self) -> bytes:
        """What is here, as a checkpoint has it."""
        with tempfile.TemporaryDirectory() as scratch:
            super().save_checkpoint(Path(scratch))
            return (Path(scratch) / FILE).read_bytes()

    def _catch_up(self) -> None:
        """Put the cluster's weights in place here."""
        if self._cluster is None or not self._behind:
            return
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / FILE).write_bytes(self._cluster.state())
            self._take_weights(Path(scratch))
        self._behind = False
