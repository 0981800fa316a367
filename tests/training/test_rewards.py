"""The reward policies: pure functions of a turn's labels."""

from __future__ import annotations

import pytest
from goodbot.ratings import RewardPolicy, TurnRating
from goodbot_training.rewards import binary, register_reward_policy
from hypothesis import given
from hypothesis import strategies as st

labels = st.lists(
    st.builds(
        TurnRating,
        value=st.floats(-1, 1),
        weight=st.floats(0, 10).map(lambda weight: round(weight, 3)),
        rater=st.sampled_from("abc"),
    ),
    max_size=6,
)


def rated(*pairs: tuple[float, float]) -> list[TurnRating]:
    return [TurnRating(value=value, weight=weight) for value, weight in pairs]


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
    ],
)
def test_binary(ratings: list[TurnRating], reward: float | None) -> None:
    assert binary(ratings) == (None if reward is None else pytest.approx(reward))


@given(labels)
def test_binary_stays_in_range_and_ignores_the_order(ratings: list[TurnRating]) -> None:
    reward = binary(ratings)
    assert reward is None or -1 <= reward <= 1
    backwards = binary(ratings[::-1])
    assert backwards == (None if reward is None else pytest.approx(reward))


def test_the_hook_offers_binary() -> None:
    policy = register_reward_policy()
    assert isinstance(policy, RewardPolicy)
    assert policy.name == "binary"
    assert policy.fn is binary
