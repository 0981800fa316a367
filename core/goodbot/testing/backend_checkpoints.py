# SPDX-License-Identifier: Apache-2.0
"""A training that is stopped between two steps goes on from its checkpoint as if nothing had been."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from goodbot.api.backend import OptimizerSettings, TrainingBackend, TrainingBatch
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import TrainingError
from goodbot.testing.backend_base import (
    LORA,
    MESSAGES,
    TEXTS,
    BackendGround,
    files,
    poisoned,
    policy_gradient,
)


class CheckpointTests(BackendGround):
    """Checkpoints, and steps that are only looked at."""

    @pytest.mark.parametrize("stop", range(4))
    def test_a_checkpoint_goes_on_bit_for_bit(
        self, backend_factory: Callable[[], TrainingBackend], model_dir: Path, tmp_path: Path, stop: int
    ) -> None:
        """In a process of its own: another object that has only read the model."""
        settings = OptimizerSettings(warmup_steps=3, attention_rate=0.3, damping=2.0)

        def begun() -> tuple[TrainingBackend, list[TrainingBatch]]:
            backend = backend_factory()
            backend.load(model_dir, lora=LORA, seed=5)
            turns = [backend.tokenize(MESSAGES, text) for text in TEXTS]
            advantages = ([1.0, -1.0], [0.5, -0.2], [0.0, 0.0], [-1.0, 0.3])
            return backend, [self.batch_of(backend, turns, [*one]) for one in advantages]

        whole, batches = begun()
        steps = list(whole.train(iter(batches), settings, policy_gradient))
        whole.save_adapter(tmp_path / "whole")

        killed, batches = begun()
        training = killed.train(iter(batches), settings, policy_gradient)
        before = [next(training) for _ in range(stop + 1)]
        (tmp_path / "checkpoint").mkdir()
        killed.save_checkpoint(tmp_path / "checkpoint")

        resumed, batches = begun()
        left = iter(batches[stop + 1 :])
        after = resumed.train(left, settings, policy_gradient, checkpoint=tmp_path / "checkpoint")
        assert [*before, *after] == steps
        resumed.save_adapter(tmp_path / "resumed")
        assert files(tmp_path / "resumed") == files(tmp_path / "whole")

    def test_a_damaged_checkpoint_is_bad_data(
        self, backend: TrainingBackend, turns: list[TokenizedTurn], tmp_path: Path
    ) -> None:
        training = backend.train(
            iter([self.batch_of(backend, turns, [1.0, -1.0])]), OptimizerSettings(), policy_gradient
        )
        next(training)
        backend.save_checkpoint(tmp_path)
        for path in tmp_path.iterdir():
            path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(TrainingError) as caught:
            next(backend.train(iter([]), OptimizerSettings(), policy_gradient, checkpoint=tmp_path))
        assert caught.value.kind == "data"

    def test_an_examined_step_is_the_one_that_would_be_taken(
        self, backend: TrainingBackend, turns: list[TokenizedTurn]
    ) -> None:
        batch, settings = self.batch_of(backend, turns, [1.0, -0.5]), OptimizerSettings()
        examined = backend.examine(batch, settings, policy_gradient)
        assert examined == backend.examine(batch, settings, policy_gradient), "nothing has changed"
        training = backend.train(iter([batch, batch]), settings, policy_gradient)
        taken = next(training)
        assert examined.loss == pytest.approx(taken.loss, rel=1e-5)
        assert examined.grad_norm == pytest.approx(taken.grad_norm, rel=1e-5)
        broken = backend.examine(batch, settings, poisoned)
        assert not math.isfinite(broken.loss)
        assert math.isfinite(next(training).loss), "and the training that waited goes on"
