# SPDX-License-Identifier: Apache-2.0
"""The baseline and the advantages, computed by hand."""

from __future__ import annotations

import pytest
from goodbot_training.job.types import Baseline
from goodbot_training.objectives.advantages import compute_advantages, to_learn, update_baseline
from hypothesis import given
from hypothesis import strategies as st

NONE = Baseline()
ONES = [1.0] * 10
rewards_strategy = st.lists(st.floats(-1, 1), min_size=1, max_size=40)


def test_the_first_reward_sets_the_baseline_outright() -> None:
    after = update_baseline(NONE, [0.5], [1.0], decay=0.99)
    assert after.mean == pytest.approx(0.5)
    assert after.weight == pytest.approx(0.01)


def test_the_average_by_hand() -> None:
    """Decay 0.9: weights .1 → .19 → .271; means 1 → (.09 - .1) / .19 → (-.009 + .1) / .271."""
    after = update_baseline(NONE, [1.0, -1.0, 1.0], [1, 1, 1], decay=0.9)
    assert after.weight == pytest.approx(0.271)
    assert after.mean == pytest.approx((0.9 * (0.09 - 0.1) + 0.1) / 0.271)


def test_advantages_by_hand() -> None:
    """Before: mean 0 and much weight. Two of three are good, so the EMA stays below their mean."""
    before = Baseline(mean=0.0, weight=1.0)
    advantages, after = compute_advantages(before, [1.0, 1.0, -1.0], [1, 1, 1], decay=0.9)
    # 0 → .1 → .19 → .071
    assert after.mean == pytest.approx(0.071)
    assert after.weight == pytest.approx(1.0)
    assert advantages == pytest.approx([0.929, 0.929, -1.071])


def test_the_baseline_is_capped_at_the_mean_of_the_round() -> None:
    before = Baseline(mean=0.9, weight=1.0)
    advantages, after = compute_advantages(before, [1.0, -1.0, -1.0], [1, 1, 1], decay=0.99)
    assert after.mean > 0.8
    assert advantages == pytest.approx([4 / 3, -2 / 3, -2 / 3])


def test_a_weight_scales_the_advantage_and_counts_in_the_mean() -> None:
    before = Baseline(mean=0.9, weight=1.0)
    advantages, _ = compute_advantages(before, [1.0, -1.0], [3.0, 1.0], decay=0.99)
    assert advantages == pytest.approx([3 * 0.5, -1.5])


@pytest.mark.parametrize("reward", [-1.0, 1.0, 0.3])
@pytest.mark.parametrize("before", [NONE, Baseline(mean=0.4, weight=0.7)])
def test_a_bad_only_stream_stalls_and_never_pushes(reward: float, before: Baseline) -> None:
    """Whatever came before, a round that only says bad gives exactly 0, not rounding noise."""
    advantages, after = compute_advantages(before, [reward] * 33, [1.0] * 33, decay=0.99)
    if reward <= before.mean or before is NONE:
        assert advantages == [0.0] * 33
    else:
        assert all(advantage > 0 for advantage in advantages)
    assert -1 <= after.mean <= 1


@given(rewards_strategy, st.floats(-1, 1), st.floats(0, 1))
def test_the_baseline_never_exceeds_the_mean_reward(rewards: list[float], mean: float, weight: float) -> None:
    before = Baseline(mean=mean, weight=weight)
    ones = [1.0] * len(rewards)
    advantages, after = compute_advantages(before, rewards, ones, decay=0.99)
    assert sum(advantages) >= -1e-9, "V ≤ mean: the safe side"
    assert min(*rewards, mean) - 1e-9 <= after.mean <= max(*rewards, mean) + 1e-9


@given(rewards_strategy, st.integers(0, 40))
def test_rounds_continue_each_other(rewards: list[float], cut: int) -> None:
    """Two rounds leave the baseline that one round of both would."""
    ones = [1.0] * len(rewards)
    whole = update_baseline(NONE, rewards, ones, decay=0.99)
    half = update_baseline(NONE, rewards[:cut], ones[:cut], decay=0.99)
    both = update_baseline(half, rewards[cut:], ones[cut:], decay=0.99)
    assert (both.mean, both.weight) == pytest.approx((whole.mean, whole.weight))


def test_weights_of_zero_teach_nothing() -> None:
    assert compute_advantages(NONE, [1.0, -1.0], [0.0, 0.0], decay=0.99) == ([0.0, 0.0], NONE)


def test_a_round_of_expected_ratings_has_little_to_teach() -> None:
    said = [1.0] * 9 + [-1.0]
    expected, _ = compute_advantages(Baseline(mean=0.8, weight=1.0), said, ONES, decay=0.999)
    assert to_learn(Baseline(mean=0.8, weight=1.0), said, ONES, expected) == pytest.approx(0.36, abs=1e-4)
    news, _ = compute_advantages(NONE, [1.0, -1.0], [1.0, 1.0], decay=0.99)
    assert to_learn(NONE, [1.0, -1.0], [1.0, 1.0], news) == pytest.approx(1.0, abs=0.01)
    nothing, _ = compute_advantages(NONE, [-1.0] * 5, [1.0] * 5, decay=0.99)
    assert to_learn(NONE, [-1.0] * 5, [1.0] * 5, nothing) == 0.0
    assert to_learn(NONE, [1.0, 1.0], [1.0, 1.0], [3.0, 3.0]) == 1.0


def test_a_round_that_is_worse_than_expected_throughout_has_much_to_teach() -> None:
    before, said = Baseline(mean=0.0, weight=1.0), [-1.0] * 9 + [1.0]
    advantages, _ = compute_advantages(before, said, ONES, decay=0.99)
    assert sum(map(abs, advantages)) / 10 == pytest.approx(0.36), "the cap hides it"
    assert to_learn(before, said, ONES, advantages) == 1.0
    bad_only, _ = compute_advantages(before, [-1.0] * 10, ONES, decay=0.99)
    assert to_learn(before, [-1.0] * 10, ONES, bad_only) == 0.0, "nothing leads anywhere"
