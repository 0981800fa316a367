"""Which ratings a run takes, and which of them the gate keeps. Pure functions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from goodbot.ratings import RewardPolicy, TurnRating
from goodbot.store.runs import Candidate, Item


def claim(
    candidates: Sequence[Candidate], policy: RewardPolicy, *, held_out_share: float
) -> tuple[Item, ...]:
    """Give every candidate its reward and its split, in the candidates' order.

    A turn to which the policy gives no reward (a tie) is left out. About `held_out_share` of the
    good and of the bad ones are held out, chosen by a hash of their ids, so that the choice does
    not follow time; a turn that was held out once is trained on from then on.
    """
    rewards: dict[str, float] = {}
    for candidate in candidates:
        ratings = [
            TurnRating(value=value, rater=rater) for rater, value in candidate.labels.items()
        ]
        reward = policy.fn(ratings)
        if reward is not None:
            rewards[candidate.turn.id] = max(-1.0, min(1.0, float(reward)))
    fresh = [c.turn.id for c in candidates if c.turn.id in rewards and not c.held_out_before]
    wanted = math.floor(held_out_share * len(rewards) + 0.5)
    good = sorted((t for t in fresh if rewards[t] > 0), key=_spread)
    bad = sorted((t for t in fresh if rewards[t] <= 0), key=_spread)
    from_good = round(wanted * len(good) / len(fresh)) if fresh else 0
    # A margin needs both sides: one good and one bad answer at least, where there are any.
    if wanted >= 2 and good and bad:
        from_good = max(1, min(wanted - 1, from_good))
    held_out = {*good[:from_good], *bad[: wanted - from_good]}
    return tuple(
        Item(
            turn=candidate.turn.id,
            split="held_out" if candidate.turn.id in held_out else "train",
            reward=rewards[candidate.turn.id],
            labels=candidate.labels,
        )
        for candidate in candidates
        if candidate.turn.id in rewards
    )


def _spread(turn: str) -> str:
    return hashlib.sha256(turn.encode()).hexdigest()
