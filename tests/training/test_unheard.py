# SPDX-License-Identifier: Apache-2.0
"""What an outvoted rater has said weighs nothing; what the others have taught goes a part of the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import require
from tests.training.test_worker import make_job

require("torch")

from goodbot.base.errors import TrainingError  # noqa: E402
from goodbot_training import planning  # noqa: E402
from goodbot_training.backends.adapters import read_adapter  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.job.settings import TrainingSettings  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round import contested  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402


def trained(
    model: Path, output: Path, items: list[dict[str, Any]], parent: Path | None = None, **settings: Any
) -> str:
    """What the gate said of the round whose candidate lies in `output` then."""
    output.mkdir()
    raw = make_job(model, output, items=items, parent=str(parent) if parent else None)
    raw["anchors"] = [item["messages"] for item in items[:2]]
    raw["settings"] |= settings
    return run_round(Job.parse(raw), TorchBackend(), lambda event: None).reason


def with_two_unheard(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    unheard = {"weight": 0.0}
    return [
        *items,
        {**items[0], "id": "unheard-1", "reward": 1.0, **unheard},
        {**items[1], "id": "unheard-2", "reward": -1.0, **unheard},
    ]


def test_a_round_goes_without_what_weighs_nothing(random_model: Path, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = make_job(random_model, tmp_path)["items"]
    without, beside = tmp_path / "without", tmp_path / "beside"
    plain = trained(random_model, without, items)
    said = trained(random_model, beside, with_two_unheard(items), contested_strength=1.0)
    file = "adapter_model.safetensors"
    assert (beside / file).read_bytes() == (without / file).read_bytes()
    assert said == (
        "2 rated answers were left out: who rated them wants the opposite of the others. " + plain
    )


def test_it_learns_more_boldly_and_goes_a_fifth_of_the_way(random_model: Path, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = make_job(random_model, tmp_path)["items"]
    parent, bold, fifth = tmp_path / "parent", tmp_path / "bold", tmp_path / "fifth"
    trained(random_model, parent, items)
    trained(random_model, bold, items, parent, learning_rate_scale=3.0, strength=1.0)
    said = trained(random_model, fifth, with_two_unheard(items), parent)
    assert "What the others have taught goes 33% of the usual way." in said
    before, to = read_adapter(parent).pairs, read_adapter(bold).pairs
    for path, pair in read_adapter(fifth).pairs.items():
        for part, since, there in zip(pair, before[path], to[path], strict=True):
            np.testing.assert_allclose(part, since + 0.2 * (there - since), atol=1e-6)


@pytest.mark.parametrize("how", ["counted", "measured"])
def test_a_plan_knows_the_rate_of_a_contested_round_and_how_far_it_goes(
    random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    plan, output = tmp_path / "plan", tmp_path / "round"
    plan.mkdir()
    output.mkdir()
    job = make_job(random_model, output)
    job["items"] = with_two_unheard(job["items"])
    events: list[dict[str, Any]] = []
    run_round(Job.parse(job), TorchBackend(), events.append)
    monkeypatch.setattr(planning, "SLOW", 0.0 if how == "counted" else 1e9)
    estimate = planning.run_plan(Job.parse({**job, "output": str(plan)}), TorchBackend(), lambda event: None)
    metrics = events[-1]["metrics"]
    assert (estimate.how, estimate.train) == (how, metrics["rollouts"])
    assert estimate.learning_rate == pytest.approx(metrics["learning_rate"], rel=1e-3)
    assert estimate.steps == metrics["steps"]
    assert estimate.share == pytest.approx(1 / 3)


def test_a_plan_of_what_nobody_is_heard_with_says_so(random_model: Path, tmp_path: Path) -> None:
    job = make_job(random_model, tmp_path)
    for item in job["items"]:
        item["weight"] = 0.0
    with pytest.raises(TrainingError, match="no rated turn"):
        planning.run_plan(Job.parse(job), TorchBackend(), lambda event: None)


@pytest.mark.parametrize(
    ("strength", "bolder"), [(0.5, 2.0), (0.4, 2.5), (0.25, 3.0), (0.1, 3.0), (0.8, 1.25)]
)
def test_the_rate_makes_up_for_what_is_taken_back_up_to_three_times(strength: float, bolder: float) -> None:
    settings = TrainingSettings(strength=strength)
    assert settings.bolder == pytest.approx(bolder)
    assert settings.rate_for(10**9) == TrainingSettings(strength=1.0).rate_for(10**9)


@pytest.mark.parametrize(("usual", "goes"), [(0.6, 0.2), (0.1, 0.1)])
def test_a_contested_round_never_goes_further_than_another(
    random_model: Path, tmp_path: Path, usual: float, goes: float
) -> None:
    raw = make_job(random_model, tmp_path)
    raw["settings"]["strength"] = usual
    raw["items"] = with_two_unheard(raw["items"])
    job, share = contested.settled(Job.parse(raw))
    assert job.settings.strength == goes
    assert share == pytest.approx(goes / usual)


def test_every_round_learns_more_boldly_and_goes_a_part_of_the_way(
    random_model: Path, tmp_path: Path
) -> None:
    items: list[dict[str, Any]] = make_job(random_model, tmp_path)["items"]
    parent, bold, part_way = tmp_path / "parent", tmp_path / "bold", tmp_path / "part"
    usual = TrainingSettings()
    trained(random_model, parent, items)
    trained(random_model, bold, items, parent, learning_rate_scale=usual.bolder, strength=1.0)
    said = trained(random_model, part_way, items, parent)
    assert "the usual way" not in said
    before, to = read_adapter(parent).pairs, read_adapter(bold).pairs
    for path, pair in read_adapter(part_way).pairs.items():
        for part, since, there in zip(pair, before[path], to[path], strict=True):
            np.testing.assert_allclose(part, since + usual.strength * (there - since), atol=1e-6)


def test_one_that_is_weakened_twice_says_how_strong_it_was_and_is(random_model: Path, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = make_job(random_model, tmp_path)["items"]
    never: dict[str, Any] = {"gate_max_drift": 0.0, "gate_min_retained": 0.0, "gate_max_foreign": 1.0}
    said = trained(random_model, tmp_path / "tenth", with_two_unheard(items), **never)
    assert "At 33% its answers are too far" in said
    assert "17% of the change is too much, too. Its answers" in said
