"""Which ratings a run takes, which of them the gate keeps, and how much each weighs. Pure functions."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from goodbot.ratings import RewardPolicy, TurnRating
from goodbot.store.claimable import Candidate
from goodbot.store.runs import Item

_CAPPED_FROM = 3
"""Raters. Two see each other's ratings and can talk; a cap would make each of them half."""


def claim(
    candidates: Sequence[Candidate],
    policy: RewardPolicy,
    *,
    held_out_share: float,
    rater_share: float = 1.0,
) -> tuple[Item, ...]:
    """Give every candidate its reward and its split, in the candidates' order.

    A turn to which the policy gives no reward (a tie) is left out. About `held_out_share` of the
    good and of the bad ones are held out, chosen by a hash of their ids, so that the choice does
    not follow time; a turn that was held out once is trained on from then on. From the third
    rater on, none weighs more than `rater_share` of what is trained on (`share_weights`).
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
    items = [
        Item(
            turn=candidate.turn.id,
            split="held_out" if candidate.turn.id in held_out else "train",
            reward=rewards[candidate.turn.id],
            labels=candidate.labels,
        )
        for candidate in candidates
        if candidate.turn.id in rewards
    ]
    trained = [item for item in items if item.split == "train"]
    shared = share_weights([item.labels.keys() for item in trained], rater_share)
    weights = {item.turn: weight for item, weight in zip(trained, shared, strict=True)}
    # What is held out keeps its weight: the gate asks about every answer alike.
    return tuple(replace(item, weight=weights.get(item.turn, 1.0)) for item in items)


def share_weights(raters: Sequence[Collection[str]], share: float) -> list[float]:
    """A weight in (0, 1] for each turn, so that no rater has more than `share` of their sum.

    `raters` are those who labelled each turn; a turn belongs to its raters in equal parts. Where
    there are too few raters for such a share, each gets an equal one. Below three nobody is held back.
    """
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for turn in raters:
        for rater in turn:
            parts[rater].append(1 / len(turn))
    totals = {rater: math.fsum(sorted(owned)) for rater, owned in parts.items()}
    if len(totals) < _CAPPED_FROM:
        return [1.0] * len(raters)
    limit = _water_level(sorted(totals.values()), max(share, 1 / len(totals)))
    factors = {rater: min(1.0, limit / total) for rater, total in totals.items()}
    return [math.fsum(sorted(factors[rater] for rater in turn)) / len(turn) for turn in raters]


def _water_level(totals: Sequence[float], share: float) -> float:
    """The limit L with L = share · Σ min(total, L); inf when no total (ascending) is above its share.

    With the k largest held at L, and S the sum of the others, L = share · S / (1 - k · share).
    """
    if totals[-1] <= share * math.fsum(totals):
        return math.inf
    for held in range(1, len(totals)):
        free, rest = totals[:-held], 1 - held * share
        if rest <= 1e-12:  # a whole number of shares fills the round: all get the same
            break
        level = share * math.fsum(free) / rest
        if free[-1] <= level:
            return level
    return totals[0]


def _spread(turn: str) -> str:
    return hashlib.sha256(turn.encode()).hexdigest()
