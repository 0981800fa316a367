"""The reward policies: the labels of one turn → its reward. Pure, synchronous, no framework.

They run in the daemon when ratings are claimed; a training job carries the finished rewards.
"""

from __future__ import annotations

from collections.abc import Sequence

from goodbot import hookimpl
from goodbot.ratings import RewardPolicy, TurnRating


def binary(ratings: Sequence[TurnRating]) -> float | None:
    """Good or bad: the weighted mean of the labels' signs, in [-1, +1].

    None (the turn trains nothing) when there is no label with a weight, or when they balance out.
    """
    votes = [(_sign(rating.value), rating.weight) for rating in ratings if rating.weight > 0]
    total = sum(weight for sign, weight in votes if sign)
    if not total:
        return None
    mean = sum(sign * weight for sign, weight in votes) / total
    # Weights are floats: 0.1 + 0.2 against 0.3 is still a tie.
    return mean if abs(mean) > 1e-9 else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


@hookimpl
def register_reward_policy() -> RewardPolicy:
    """Offer `binary`, the default."""
    return RewardPolicy(name="binary", fn=binary)
