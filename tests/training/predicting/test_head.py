# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the reward model: what is planted is found, and of nothing nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from goodbot_training.predicting import head
from goodbot_training.predicting.run import PredictItem, predicted


def made(seed: int, n: int = 400, width: int = 64, slips: float = 0.08) -> tuple[Any, Any, Any]:
    """States of a few directions, ratings that mostly follow one of them, and which ratings are slips."""
    random = np.random.default_rng(seed)
    within = random.normal(size=(n, 12)) * np.geomspace(3, 1, 12)
    states = 3.0 + within @ random.normal(size=(12, width)) + 0.3 * random.normal(size=(n, width))
    good = (within[:, 4] + 0.5 * random.normal(size=n) > 0).astype(float)
    slip = random.random(n) < slips
    return states, np.where(slip, 1 - good, good), slip


def items(good: Any, *, question: Any = None) -> list[PredictItem]:
    return [
        PredictItem(
            id=f"a{n}",
            messages=(),
            response="",
            question=str(n if question is None else question[n]),
            person="p0",
            good=None if np.isnan(one) else bool(one),
        )
        for n, one in enumerate(good)
    ]


def test_planted_slips_are_found_first() -> None:
    hits: list[float] = []
    for seed in range(8):
        states, good, slip = made(seed)
        told = predicted(items(good), states, 0, seed)
        assert told["low"] > 0.6
        doubt = sorted(range(len(good)), key=lambda n: -abs(good[n] - told["said"][n]["chance"]))
        hits.append(float(slip[doubt[:10]].mean()))
    assert np.mean(hits) >= 0.8
    assert min(hits) >= 0.6


def test_of_shuffled_ratings_nothing_is_said() -> None:
    quiet = 0
    for seed in range(20):
        states, good, _ = made(seed)
        np.random.default_rng(seed).shuffle(good)
        quiet += not predicted(items(good), states, 0, seed)["said"]
    assert quiet >= 19


def test_what_nobody_rated_is_predicted_as_well_as_what_was_held_out() -> None:
    states, good, _ = made(3, n=600, slips=0.0)
    known = good.copy()
    known[400:] = np.nan
    told = predicted(items(known), states, 0, 0)
    chances = np.array([one["chance"] for one in told["said"]])[400:]
    assert all(one["good"] is None for one in told["said"][400:])
    found, _, _ = head.ranked(chances, good[400:], np.arange(200), seed=0)
    assert abs(found - told["auc"]) < 0.1


def test_chances_are_what_they_say() -> None:
    states, good, _ = made(5, n=1000, slips=0.0)
    told = predicted(items(good), states, 0, 0)
    assert [one["answers"] for one in told["bins"]] == [200] * 5
    for one in told["bins"]:
        assert one["good"] / 200 == pytest.approx(one["expected"], abs=0.12)


def test_the_same_question_is_never_in_both() -> None:
    """States say which question it is, and each question is rated by a coin: that is nothing to learn."""
    random = np.random.default_rng(1)
    question = np.repeat(np.arange(40), 10)
    states = random.normal(size=(40, 64))[question] + 0.05 * random.normal(size=(400, 64))
    good = (random.random(40) < 0.5).astype(float)[question]
    assert predicted(items(good, question=question), states, 0, 0)["said"] == []
    leaking = predicted(items(good), states, 0, 0)
    assert leaking["auc"] > 0.9, "each answer as if its question were its own"


def test_groups_hold_together_what_shares_a_key() -> None:
    groups = head.grouped(["a", "b", "a", "c", "d"], ["x", "y", "y", "z", "z"])
    assert groups[0] == groups[1] == groups[2]
    assert groups[3] == groups[4] != groups[0]
    folds = head.folds(np.repeat(np.arange(50), 4), 0)
    assert all(len(set(folds[4 * n : 4 * n + 4])) == 1 for n in range(50))
    assert set(np.bincount(folds)) == {40}


def test_the_auc_by_hand() -> None:
    good = np.array([1.0, 1.0, 0.0, 0.0])
    assert head.ranked(np.array([3.0, 1.0, 2.0, 0.0]), good, np.arange(4), seed=0)[0] == 0.75
    assert head.ranked(np.zeros(4), good, np.arange(4), seed=0)[0] == 0.5


def test_a_calibration_is_never_the_wrong_way_round() -> None:
    logits, good = np.linspace(-2, 2, 100), (np.arange(100) < 50).astype(float)
    assert np.ptp(head.calibrated(logits, good, logits)) == pytest.approx(0)


@pytest.mark.parametrize("good", [np.ones(300), np.zeros(300)])
def test_ratings_that_are_all_alike_stay_finite(good: Any) -> None:
    states, _, _ = made(1, n=300)
    found = head.held_out(head.main_parts(states), good, np.arange(300), seed=0)
    assert np.isfinite(found.chances).all()
    assert found.auc == 0.5


def test_what_is_unlike_all_others_is_odd_and_few_others_are() -> None:
    for seed in range(5):
        states, _, _ = made(seed)
        states[7] += 60 * np.random.default_rng(seed).normal(size=64)
        odd = head.odd(head.main_parts(states))
        assert odd[7]
        assert odd.sum() <= 3


def test_more_parts_than_answers_or_numbers_that_never_change_are_no_trouble() -> None:
    states = np.ones((200, 4096))
    states[:, 0] = np.arange(200)
    parts = head.main_parts(states)
    assert np.isfinite(parts).all()
    assert parts.shape == (200, 20)
