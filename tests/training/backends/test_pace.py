# SPDX-License-Identifier: Apache-2.0
"""The rate and the damping of each step, by hand and as the framework's AdamW takes them."""

from __future__ import annotations

import math

import pytest
from goodbot.api.backend import OptimizerSettings
from goodbot_training.backends.pace import StepSize

from tests.support import require

SIZES = (1.0, 0.1, 1e-3)
"""Of the gradients of three weights, the same in every step."""


def test_without_damping_it_is_adamw() -> None:
    pace = StepSize(settings=OptimizerSettings(learning_rate=0.1, decay_steps=4), weights=100)
    assert [pace.step(0.5) for _ in range(3)] == [(pytest.approx(rate), 1e-8) for rate in (0.1, 0.075, 0.05)]


def test_damping_is_told_by_the_mean_gradient_so_far() -> None:
    pace = StepSize(settings=OptimizerSettings(learning_rate=0.1, damping=3.0), weights=100)
    assert pace.step(0.2) == (pytest.approx(0.4), pytest.approx(3 * 0.2 / 10))
    rate, epsilon = pace.step(5.0)  # clipped to 1
    mean = (0.001 * 1.0 + 0.999 * 0.001 * 0.04) / (1 - 0.999**2)
    assert (rate, epsilon) == (pytest.approx(0.4), pytest.approx(3 * math.sqrt(mean / 100)))


def test_weights_decay_as_they_do_without_damping() -> None:
    pace = StepSize(settings=OptimizerSettings(damping=3.0, weight_decay=0.1), weights=7)
    rate, _ = pace.step(0.2)
    assert rate * pace.weight_decay == pytest.approx(OptimizerSettings().learning_rate * 0.1)


def test_what_a_checkpoint_keeps_goes_on() -> None:
    settings = OptimizerSettings(damping=3.0, decay_steps=9)
    whole, other = StepSize(settings=settings, weights=7), StepSize(settings=settings, weights=7)
    steps = [whole.step(norm) for norm in (0.3, 0.9, 0.1)]
    assert [other.step(norm) for norm in (0.3, 0.9)] == steps[:2]
    resumed = StepSize(settings=settings, weights=7)
    resumed.state = other.state
    assert resumed.step(0.1) == steps[2]


@pytest.mark.parametrize("damping", [0.0, 3.0])
def test_a_weight_of_small_gradients_hardly_moves(damping: float) -> None:
    torch = require("torch")
    weights, gradient = torch.nn.Parameter(torch.zeros(3)), torch.tensor(SIZES)
    optimizer = torch.optim.AdamW([weights], weight_decay=0.0)
    pace = StepSize(settings=OptimizerSettings(learning_rate=0.01, damping=damping), weights=3)
    for _ in range(5):
        weights.grad = gradient.clone()
        rate, epsilon = pace.step(float(gradient.norm()))
        optimizer.param_groups[0] |= {"lr": rate, "eps": epsilon}
        optimizer.step()
    norm = min(1.0, float(gradient.norm()))
    usual = norm / math.sqrt(3)
    expected = [-0.05 * (1 + damping) * g / (g + damping * usual) for g in SIZES]
    assert weights.tolist() == pytest.approx(expected, rel=1e-4)
