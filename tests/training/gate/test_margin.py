# SPDX-License-Identifier: Apache-2.0
"""The held-out margin against t tests done by hand, and what chance passes for learning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from goodbot.base.intervals import student
from goodbot_training.gate.decide import CLAIM_LEVEL, ENOUGH
from goodbot_training.gate.margin import margin, sums
from goodbot_training.job.types import HeldOutSums

from tests.training.factories import make_rollout


def one_round(rewards: list[float], changes: Any) -> HeldOutSums:
    """A round whose answers' mean log-probs changed so."""
    held_out = [make_rollout(n, reward=reward) for n, reward in enumerate(rewards)]
    before = [np.full(3, -1.0, np.float32) for _ in rewards]
    after = [np.full(3, -1.0 + change, np.float32) for change in changes]
    return sums(held_out, before, after)


def test_one_round_is_students_t_test() -> None:
    good, bad = [0.5, 0.3, 0.4, 0.6], [-1.0, -2.0, -1.5, -1.2]
    found = margin([one_round([1.0] * 4 + [-1.0] * 4, good + bad)], 0.95)
    assert found.change == pytest.approx(0.45 + 1.425, rel=1e-5)
    pooled = (np.var(good, ddof=1) + np.var(bad, ddof=1)) / 2
    half = 2.446912 * math.sqrt(pooled * (1 / 4 + 1 / 4))
    assert (found.low, found.high) == pytest.approx((found.change - half, found.change + half), rel=1e-3)


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.975, 4, 2.7764), (0.975, 6, 2.4469), (0.995, 10, 3.1693), (0.995, 58, 2.6633)],
)
def test_the_quantiles_are_those_of_the_tables(probability: float, freedom: int, value: float) -> None:
    assert student(probability, freedom) == pytest.approx(value, rel=5e-3)


def test_a_round_that_made_all_answers_less_likely_counts_nothing() -> None:
    rewards = [1.0, -1.0, -1.0, -1.0]
    calm = one_round(rewards, [0.1, 0.0, 0.1, -0.1])
    sunk = one_round(rewards, [-1.9, -2.0, -1.9, -2.1])
    assert margin([calm, sunk], 0.95).change == pytest.approx(margin([calm], 0.95).change, rel=1e-4)


def test_stars_count_by_their_number() -> None:
    # Nats rise by .1 a point of reward: .2 from the worst to the best.
    rewards = [1.0, 0.5, 0.25, -0.5, -1.0, -0.75]
    found = margin([one_round(rewards, [0.1 * reward for reward in rewards])], 0.95)
    assert found.change == pytest.approx(0.2, rel=1e-4)


def test_ratings_of_one_sign_a_tie_and_none_at_all_say_nothing() -> None:
    for rewards in ([], [-1.0, -1.0, -1.0], [0.0, 1.0]):
        found = one_round(rewards, [0.5] * len(rewards))
        assert found.n == 0
        assert not math.isfinite(margin([found], 0.95).low)
    few = margin([one_round([1.0, -1.0], [1.0, -1.0])], 0.95)
    assert (few.ratings, math.isfinite(few.low)) == (2, False)


def better(rounds: list[HeldOutSums]) -> bool:
    found = margin(rounds, CLAIM_LEVEL)
    return found.ratings >= ENOUGH and found.low > 0


def test_shuffled_ratings_practically_never_pass_for_learning() -> None:
    """2000 bots of ten rounds whose ratings are dealt out at random, asked after every round."""
    random = np.random.default_rng(7)
    claims = 0
    for _ in range(2000):
        rounds: list[HeldOutSums] = []
        told = False
        for _ in range(10):
            rewards = random.permutation([1.0] * 3 + [-1.0] * 5).tolist()
            rounds.append(one_round(rewards, random.standard_t(5, 8) * 0.3 - 0.2))
            told |= better(rounds)
        claims += told
    assert claims <= 0.02 * 2000, claims


def test_what_was_learnt_is_told_once_there_is_enough() -> None:
    random = np.random.default_rng(8)
    rewards = [1.0] * 4 + [-1.0] * 4
    rounds = [one_round(rewards, random.normal(0, 0.3, 8) + 0.2 * np.array(rewards)) for _ in range(8)]
    assert not better(rounds[:7]), "56 are too few, whatever they say"
    assert better(rounds)
