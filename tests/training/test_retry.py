# SPDX-License-Identifier: Apache-2.0
"""A candidate that is refused for its damage is asked once more at half its strength."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import require
from tests.training.test_worker import make_job

require("torch")

from goodbot_training.backends.adapters import AdapterWeights, read_adapter  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.gate import Verdict  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

TAUGHT: dict[str, Any] = {
    "objective": "reinforce",
    "kl": 0.0,
    "learning_rate": 0.03,
    "steps": 8,
    "rank": 4,
    "gate_anchors": 8,
    "gate_max_tokens": 6,
    "gate_min_retained": 0.0,
    "gate_max_foreign": 1.0,
    "gate_max_length_ratio": 1000.0,
    "gate_max_degenerate": 1.0,
    "gate_max_anchor_loss": 1000.0,
}


def taught(
    model: Path, output: Path, parent: Path | None = None, **settings: Any
) -> tuple[Verdict, AdapterWeights, dict[str, Any]]:
    """The verdict of a round, its candidate as it lies on the disk, and the gate's event."""
    output.mkdir()
    job = make_job(model, output, settings={**TAUGHT, **settings}, parent=str(parent) if parent else None)
    events: list[dict[str, Any]] = []
    verdict = run_round(Job.parse(job), TorchBackend(), events.append)
    gate = next(event for event in events if event["event"] == "gate")
    return verdict, read_adapter(output), gate


def effects(weights: AdapterWeights) -> dict[str, Any]:
    return {path: weights.scale * b @ a for path, (a, b) in weights.pairs.items()}


def test_half_of_what_drifted_too_far_may_pass(random_model: Path, tmp_path: Path) -> None:
    once, full, gate = taught(random_model, tmp_path / "once", gate_max_drift=0.0, gate_retry=0.0)
    assert not once.passed
    assert "strength" not in gate["metrics"]
    drift = gate["metrics"]["drift"]
    verdict, half, gate = taught(random_model, tmp_path / "twice", gate_max_drift=0.7 * drift)
    assert verdict.passed, verdict.reason
    assert verdict.reason.startswith("50% of the change is kept. No harm found")
    assert "At full strength its answers are too far from the base model's:" in verdict.reason
    assert gate["metrics"]["strength"] == 0.5
    assert gate["metrics"]["drift"] < 0.7 * drift
    for path, effect in effects(half).items():
        np.testing.assert_allclose(effect, 0.5 * effects(full)[path], atol=1e-6)


def test_half_the_way_from_the_adapter_before(random_model: Path, tmp_path: Path) -> None:
    taught(random_model, tmp_path / "parent", gate_max_drift=1000.0)
    parent = tmp_path / "parent"
    never = {"gate_max_drift": 0.0}
    _, full, _ = taught(random_model, tmp_path / "once", parent, **never, gate_retry=0.0)
    verdict, half, _ = taught(random_model, tmp_path / "twice", parent, **never)
    assert not verdict.passed, "half the drift is still above none"
    assert verdict.reason.lower().count("its answers are too far") == 2
    before = read_adapter(parent)
    for path, (a, b) in half.pairs.items():
        for part, one, other in zip((a, b), full.pairs[path], before.pairs[path], strict=True):
            np.testing.assert_allclose(part, 0.5 * (one + other), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("gate_retry", -0.1, "between 0 and 1"),
        ("gate_retry", 1.5, "between 0 and 1"),
        ("contested_strength", 1.5, "at most 1"),
        ("contested_strength", 0.0, "above 0"),
        ("strength", 1.5, "at most 1"),
        ("strength", 0.0, "above 0"),
    ],
)
def test_a_strength_is_a_share(name: str, value: float, wrong: str) -> None:
    from goodbot.base.errors import TrainingError
    from goodbot_training.job.types import TrainingSettings

    with pytest.raises(TrainingError, match=f"{name} must .*{wrong}"):
        TrainingSettings.from_mapping({name: value})
