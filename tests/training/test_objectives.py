# SPDX-License-Identifier: Apache-2.0
"""The objectives beside MIS-PO, by hand-made figures, a numerical gradient, and each namespace."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from goodbot.testing import ObjectiveContract
from goodbot_training.job.types import Baseline, TrainingSettings
from goodbot_training.objectives import NAMES, make_objective
from goodbot_training.objectives.mispo import MisPo
from goodbot_training.objectives.preference import Bco, Kto, goods_only, signed

from tests.support import require
from tests.training.oracle import arrays

N = 20.0
NONE = Baseline(mean=0.0, weight=0.0)
LOSSES = {"kto": Kto(beta=0.7), "bco": Bco(beta=0.7)}


def two(implied_good: float, implied_bad: float) -> dict[str, Any]:
    """A good and a bad answer of two tokens each, whose implied rewards are these."""
    reference = np.full((2, 2), -1.0)
    return {
        "policy_logprobs": reference + np.array([[implied_good / 2] * 2, [implied_bad / 2] * 2]),
        "sampling_logprobs": reference.copy(),
        "reference_logprobs": reference,
        "advantages": np.array([1.0, -1.0]),
        "mask": np.ones((2, 2)),
    }


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_kto_by_hand() -> None:
    loss, statistics = Kto(beta=0.5)(np, **two(2.0, 1.0), normalizer=1.0)
    anchor = 0.5 * (2.0 + 1.0) / 2
    expected = (1 - sigmoid(1.0 - anchor)) + (1 - sigmoid(-(0.5 - anchor)))
    assert float(loss) == pytest.approx(expected)
    assert float(statistics["tokens_accepted"]) == 4
    assert float(statistics["trajectories_accepted"]) == 2


def test_ktos_anchor_is_never_below_zero() -> None:
    loss, _ = Kto(beta=0.5)(np, **two(-2.0, -4.0), normalizer=1.0)
    assert float(loss) == pytest.approx((1 - sigmoid(-1.0)) + (1 - sigmoid(2.0)))


def test_bco_by_hand() -> None:
    loss, _ = Bco(beta=0.5)(np, **two(2.0, -3.0), normalizer=2.0)
    shift = (1.0 - 1.5) / 2
    expected = -math.log(sigmoid(1.0 - shift)) - math.log(sigmoid(-(-1.5 - shift)))
    assert float(loss) == pytest.approx(expected / 2)


def test_a_weight_of_nothing_counts_for_nothing() -> None:
    data = two(2.0, 1.0)
    data["advantages"] = np.array([1.0, 0.0])
    whole, _ = Bco(beta=0.5)(np, **data, normalizer=1.0)
    assert float(whole) == pytest.approx(-math.log(sigmoid(1.0 - 0.75)))


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_losss_own(name: str) -> None:
    """By central differences; anchor and shift are detached, so they are held still."""
    torch = require("torch")
    loss, data = LOSSES[name], arrays()
    tensors = {key: torch.tensor(array) for key, array in data.items()}
    tensors["policy_logprobs"].requires_grad_()
    loss(torch, **tensors, normalizer=N)[0].backward()
    gradient = tensors["policy_logprobs"].grad.numpy()

    difference = (data["policy_logprobs"] - data["reference_logprobs"]) * data["mask"]
    mean = (0.7 * difference.sum(axis=1)).mean()
    held = max(mean, 0.0) if name == "kto" else mean
    sign = np.where(data["advantages"] > 0, 1.0, -1.0)

    def value(policy: Any) -> float:
        implied = 0.7 * ((policy - data["reference_logprobs"]) * data["mask"]).sum(axis=1)
        inner = 1 / (1 + np.exp(-sign * (implied - held)))
        each = 1 - inner if name == "kto" else -np.log(inner)
        return float((np.abs(data["advantages"]) * each).sum() / N)

    step = 1e-6
    for index in np.ndindex(*gradient.shape):
        up, down = data["policy_logprobs"].copy(), data["policy_logprobs"].copy()
        up[index] += step
        down[index] -= step
        slope = (value(up) - value(down)) / (2 * step)
        assert gradient[index] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("framework", ["torch", "mlx.core"])
def test_every_namespace_agrees(name: str, framework: str) -> None:
    xp = require(framework)
    loss = LOSSES[name]
    made = xp.tensor if framework == "torch" else xp.array
    data = {key: made(array) for key, array in arrays(np.float32).items()}
    value, statistics = loss(xp, **data, normalizer=N)
    expected, sums = loss(np, **arrays(), normalizer=N)
    assert float(value) == pytest.approx(float(expected), rel=1e-4)
    for key, number in sums.items():
        assert float(statistics[key]) == pytest.approx(float(number), rel=1e-4), key


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("implied", [600.0, -600.0])
def test_far_from_the_base_nothing_overflows(name: str, implied: float) -> None:
    with np.errstate(over="raise", invalid="raise"):
        loss, _ = LOSSES[name](np, **two(implied, -implied), normalizer=1.0)
    assert np.isfinite(loss)


def test_a_token_stops_only_where_its_advantage_has_pushed_it() -> None:
    loss = MisPo(
        variant="sign_aware",
        token_low=0.5,
        token_high=2.0,
        trajectory_low=0.01,
        trajectory_high=100.0,
        kl=0.0,
    )
    log_ratio = np.log(np.array([[3.0, 0.3, 1.0], [3.0, 0.3, 1.0]]))
    terms, _ = loss.coefficients(np, log_ratio, log_ratio, np.array([1.0, -1.0]), np.ones((2, 3)))
    assert terms.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]


def test_reinforce_takes_every_token_as_it_is() -> None:
    loss = MisPo.from_settings(TrainingSettings(objective="reinforce"))
    log_ratio = np.array([[3.0, -9.0]])
    terms, _ = loss.coefficients(np, log_ratio, log_ratio, np.array([1.0]), np.array([[1.0, 1.0]]))
    assert terms.tolist() == [[1.0, 1.0]]


def test_good_answers_only() -> None:
    assert goods_only(NONE, [1.0, -1.0, 0.5], [1.0, 1.0, 0.5]) == ([1.0, 0.0, 0.25], NONE)


def test_ratings_as_they_are() -> None:
    assert signed(NONE, [1.0, -1.0, 0.5], [1.0, 0.5, 1.0]) == ([1.0, -0.5, 0.5], NONE)


def test_each_objective_has_its_rule_for_advantages() -> None:
    rewards, weights = [1.0, -1.0, 1.0, 1.0], [1.0] * 4
    found = {
        name: make_objective(TrainingSettings(objective=name)).advantages(NONE, rewards, weights)[0]
        for name in ("scale", "reinforce", "sft_good", "kto")
    }
    assert found["scale"] == found["reinforce"]
    assert sum(found["scale"]) == pytest.approx(0.0, abs=0.1)
    assert found["sft_good"] == [1.0, 0.0, 1.0, 1.0]
    assert found["kto"] == [1.0, -1.0, 1.0, 1.0]


class TestContract(ObjectiveContract):
    """Our own are held to what a plugin's is held to."""

    @pytest.fixture(params=NAMES)
    def factory(self, request: pytest.FixtureRequest) -> Callable[[TrainingSettings], Any]:
        self.name: str = request.param
        return lambda settings: make_objective(replace(settings, objective=request.param))

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        return self.name not in LOSSES
