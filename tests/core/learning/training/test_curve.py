# SPDX-License-Identifier: Apache-2.0
"""The loss of a training's steps: small however many they are, and never of steps that are done anew."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from goodbot.learning.training.curve import MOST, LossCurve


def of(*steps: int, run: int = 1) -> LossCurve:
    curve = LossCurve()
    for step in steps:
        curve.add(run, told(step))
    return curve


def told(step: int, **more: Any) -> dict[str, Any]:
    return {"phase": "train", "step": step, "steps": 9999, "loss": step / 2, **more}


def test_few_steps_are_all_there() -> None:
    assert list(of(1, 2, 3).points) == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert list(LossCurve().points) == []


@pytest.mark.parametrize("steps", [MOST - 1, MOST, MOST + 1, 5001])
def test_of_many_steps_some_are_kept_evenly_and_the_newest(steps: int) -> None:
    curve = LossCurve()
    for step in range(1, steps + 1):
        curve.add(1, told(step))
        assert len(curve.points) <= MOST
    points = curve.points
    assert len(points) >= MOST // 2 - 1
    assert points[-1] == (steps, steps / 2)
    kept = [step for step, _ in points[:-1]]
    assert len({after - before for before, after in itertools.pairwise(kept)}) == 1
    assert all(loss == step / 2 for step, loss in points)


def test_what_is_done_anew_after_a_kill_is_there_once() -> None:
    curve = of(1, 2, 3, 4)
    curve.add(1, told(3, loss=9))
    assert list(curve.points) == [(1, 0.5), (2, 1.0), (3, 9.0)]


def test_another_run_begins_another_curve() -> None:
    curve = of(1, 2)
    curve.add(2, {"phase": "load", "step": 0, "steps": 2})
    assert list(curve.points) == []


@pytest.mark.parametrize(
    "event",
    [
        {"phase": "gate", "step": 3, "steps": 9, "loss": 1.0},
        {"phase": "train", "step": 3, "steps": 9},
        told(3, loss=float("nan")),
        told(3, loss=float("inf")),
        told(3, loss="low"),
        {**told(3), "step": None},
    ],
)
def test_what_tells_no_loss_of_a_step_changes_nothing(event: dict[str, Any]) -> None:
    curve = of(1, 2)
    curve.add(1, event)
    assert list(curve.points) == [(1, 0.5), (2, 1.0)]
