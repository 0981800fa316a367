# SPDX-License-Identifier: Apache-2.0
"""A round whose steps break although no answer is to blame is tried again at half of its rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.base.errors import TrainingError

from tests.support import require
from tests.training.test_worker import make_job

require("torch")

from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

FILE = "adapter_model.safetensors"


@dataclass
class Breaking(TorchBackend):
    """Breaks at its third step, as a real model does, where the rate is above `bears`."""

    bears: float = 1.0
    rates: list[float] = field(default_factory=list[float])
    killed: bool = False

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        self.rates.append(settings.learning_rate)
        for number, stats in enumerate(super().train(batches, settings, loss, checkpoint=checkpoint)):
            if number == 2 and settings.learning_rate > self.bears:
                raise TrainingError("The loss is not a finite number.", kind="nan")
            yield stats
            if self.killed and number == 1 and settings.learning_rate <= self.bears:
                raise KeyboardInterrupt


def job(model: Path, output: Path, **settings: Any) -> dict[str, Any]:
    output.mkdir()
    raw = make_job(model, output)
    raw["settings"] |= {"gate_anchors": 0, "slice_steps": 1, "steps": 6, **settings}
    return raw


def test_it_is_trained_at_half_of_the_rate_from_the_start(random_model: Path, tmp_path: Path) -> None:
    plain = job(random_model, tmp_path / "plain", learning_rate_scale=0.5)
    run_round(Job.parse(plain), TorchBackend(), lambda event: None)
    backend, raw = Breaking(bears=4e-3), job(random_model, tmp_path / "broke")
    events: list[dict[str, Any]] = []
    verdict = run_round(Job.parse(raw), backend, events.append)
    assert len(backend.rates) == 2
    assert backend.rates[1] == backend.rates[0] / 2
    assert (tmp_path / "broke" / FILE).read_bytes() == (tmp_path / "plain" / FILE).read_bytes()
    assert "The training failed at its learning rate and was repeated at half of that" in verdict.reason
    assert events[-1]["peak_memory"] > 0
    done = events[-1]["metrics"]
    assert done["learning_rate"] == pytest.approx(backend.rates[1], abs=1e-6)
    assert done["left_out"] == 0


def test_one_that_is_killed_after_that_goes_on_at_half_of_the_rate(
    random_model: Path, tmp_path: Path
) -> None:
    whole = job(random_model, tmp_path / "whole")
    run_round(Job.parse(whole), Breaking(bears=4e-3), lambda event: None)
    raw = job(random_model, tmp_path / "killed")
    raw["checkpoints"] = str(tmp_path / "checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run_round(Job.parse(raw), Breaking(bears=4e-3, killed=True), lambda event: None)
    again = Breaking(bears=4e-3)
    run_round(Job.parse(raw), again, lambda event: None)
    assert again.rates == [pytest.approx(2.5e-3)]
    assert (tmp_path / "killed" / FILE).read_bytes() == (tmp_path / "whole" / FILE).read_bytes()


def test_it_fails_where_a_quarter_of_the_rate_breaks_too(random_model: Path, tmp_path: Path) -> None:
    backend, raw = Breaking(bears=0.0), job(random_model, tmp_path / "out")
    with pytest.raises(TrainingError, match="not a finite number"):
        run_round(Job.parse(raw), backend, lambda event: None)
    assert [rate / backend.rates[0] for rate in backend.rates] == [1, 0.5, 0.25]
