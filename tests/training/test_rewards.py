# SPDX-License-Identifier: Apache-2.0
"""The reward policies: pure functions of a turn's labels, checked by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from goodbot.api.labels import star_value
from goodbot.api.rewards import Moments, TurnRating
from goodbot_training.objectives.rewards import binary, hybrid, normalize, ordinal, register_reward_policy
from hypothesis import given
from hypothesis import strategies as st

Policy = Callable[[Sequence[TurnRating]], float | None]

values = st.floats(-1, 1)
labels = st.lists(
    st.builds(
        TurnRating,
        value=values,
        weight=st.floats(0, 10).map(lambda weight: round(weight, 3)),
        rater=st.sampled_from("abc"),
        stars=st.none() | values,
    ),
    max_size=6,
)


def rated(*pairs: tuple[float, float]) -> list[TurnRating]:
    return [TurnRating(value=value, weight=weight) for value, weight in pairs]


def both(thumb: float, stars: int) -> TurnRating:
    return TurnRating(value=thumb, stars=star_value(stars))


def alone(stars: int) -> TurnRating:
    return TurnRating(value=star_value(stars))


@pytest.mark.parametrize(
    ("ratings", "reward"),
    [
        (rated((1, 1)), 1.0),
        (rated((-1, 1)), -1.0),
        (rated((0.4, 1)), 1.0),
        (rated((1, 1), (1, 1), (-1, 1)), 1 / 3),
        (rated((1, 3), (-1, 1)), 0.5),
        (rated((1, 1), (0, 5)), 1.0),
        (rated((1, 1), (-1, 1)), None),
        (rated((1, 0.1), (1, 0.2), (-1, 0.3)), None),
        (rated((1, 0)), None),
        (rated((0, 1)), None),
        ([], None),
        ([both(1, 1)], 1.0),  # the thumb counts
        ([alone(2)], -1.0),
        ([alone(3)], None),
    ],
)
def test_binary(ratings: list[TurnRating], reward: float | None) -> None:
    assert binary(ratings) == (None if reward is None else pytest.approx(reward))


def test_ordinal_by_hand() -> None:
    assert [ordinal([alone(stars)]) for stars in (1, 2, 3, 4, 5)] == [-1, -0.5, 0, 0.5, 1]
    assert ordinal([both(1, 4)]) == 0.5, "stars count before a thumb"
    assert ordinal(rated((1, 1))) == 1
    # (3 · 0.5 + 1 · -1) / 4
    assert ordinal(rated((0.5, 3), (-1, 1))) == pytest.approx(0.125)
    assert ordinal([]) is None
    assert ordinal(rated((1, 0))) is None


def test_hybrid_by_hand() -> None:
    assert hybrid([both(1, 4)]) == pytest.approx(0.8)
    assert hybrid([both(-1, 2)]) == pytest.approx(-0.4)
    good = [hybrid([both(1, stars)]) for stars in (5, 4, 3, 2, 1)]
    assert good == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5])
    bad = [hybrid([both(-1, stars)]) for stars in (5, 4, 3, 2, 1)]
    assert bad == pytest.approx([-0.1, -0.2, -0.3, -0.4, -0.5])
    assert hybrid(rated((-1, 1))) == -1
    assert hybrid([alone(4)]) == 0.5
    # 👍 with 4 stars, and 👎 alone: (0.8 - 1) / 2
    assert hybrid([both(1, 4), *rated((-1, 1))]) == pytest.approx(-0.1)


def test_normalized_by_hand() -> None:
    recent = Moments(mean=0.5, deviation=0.25, count=40)
    # (1 - 0.5) / 0.5, (0.75 - 0.5) / 0.5, (0.5 - 0.5) / 0.5, and -1 is three full rewards below
    assert [normalize(r, recent) for r in (1, 0.75, 0.5, -1)] == [1, 0.5, 0, -1]
    few = Moments(mean=0.5, deviation=0.25, count=7)
    assert normalize(1.0, few) == 1.0, "seven rewards say nothing of the spread"
    assert normalize(1.0, Moments(mean=1.0, deviation=0.0, count=40)) == 1.0


def test_the_moments_by_hand() -> None:
    assert Moments.over([]) == Moments()
    # mean 1/3; ((2/3)² + (2/3)² + (4/3)²) / 3 = 8/9
    moments = Moments.over([1.0, 1.0, -1.0])
    assert (moments.mean, moments.count) == (pytest.approx(1 / 3), 3)
    assert moments.deviation == pytest.approx((8 / 9) ** 0.5)


@pytest.mark.parametrize("policy", [binary, ordinal, hybrid])
@given(ratings=labels)
def test_a_reward_stays_in_range_and_ignores_the_order(policy: Policy, ratings: list[TurnRating]) -> None:
    reward = policy(ratings)
    assert reward is None or -1 - 1e-9 <= reward <= 1 + 1e-9
    backwards = policy(ratings[::-1])
    assert backwards == (None if reward is None else pytest.approx(reward))


@given(st.floats(-1, 1), st.lists(values, max_size=40))
def test_a_normalized_reward_stays_in_range(reward: float, before: list[float]) -> None:
    assert -1 <= normalize(reward, Moments.over(before)) <= 1


@given(st.sampled_from([-1.0, 1.0]), st.integers(1, 4))
def test_with_both_given_the_thumb_says_which_way_and_more_stars_are_better(thumb: float, stars: int) -> None:
    less, more = hybrid([both(thumb, stars)]), hybrid([both(thumb, stars + 1)])
    assert less is not None
    assert more is not None
    assert less < more
    assert less * thumb > 0


def test_the_hook_offers_them_by_name() -> None:
    offered = {policy.name: policy for policy in register_reward_policy()}
    assert [*offered] == ["binary", "ordinal", "hybrid", "normalized"]
    assert offered["binary"].fn is binary
    assert [name for name, policy in offered.items() if policy.rescale] == ["normalized"]
