# SPDX-License-Identifier: Apache-2.0
"""Rewards → advantages, by a baseline that outlives the round.

The baseline is an exponential moving average (EMA) of all rewards ever trained on. For each reward
r of weight ω, in the order of the rating events, with decay d:

    weight' = d · weight + (1 - d) · ω
    mean'   = (d · weight · mean + (1 - d) · ω · r) / weight'

so `mean` is bias-corrected by construction: the first reward sets it outright. The round's own
rewards go in first; then

    V = min(mean', weighted mean reward of the round)        A_i = ω_i · (r_i - V)

Why the cap: with V above the mean reward of the data, pushing down what was rated bad outweighs
the rest and can destroy the model; at or below the mean it is safe (AsymRE). Why the EMA: a round
that says only "bad" gets V = -1 and advantages of exactly 0, so it stalls instead of tearing the
model apart, and a round that says only "good" to a bot that is always good changes nothing. No
z-score: dividing by the batch's deviation would cancel the baseline and blow up the noise of one-
sided batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goodbot_training.job.types import Baseline


def update_baseline(
    baseline: Baseline, rewards: Sequence[float], weights: Sequence[float], *, decay: float
) -> Baseline:
    """The EMA after these rewards, in their order."""
    mean, weight = baseline.mean, baseline.weight
    for reward, share in zip(rewards, weights, strict=True):
        if share <= 0:
            continue
        grown = decay * weight + (1 - decay) * share
        # Written as a step toward r, so that a stream of equal rewards stays exactly equal.
        mean += (1 - decay) * share / grown * (reward - mean)
        weight = grown
    return replace(baseline, mean=mean, weight=weight)


def compute_advantages(
    baseline: Baseline, rewards: Sequence[float], weights: Sequence[float], *, decay: float
) -> tuple[list[float], Baseline]:
    """One advantage a reward, and the baseline's new state.

    `rewards` in [-1, 1] and `weights` (not negative) are the round's training items, in the order
    of their rating events.
    """
    after = update_baseline(baseline, rewards, weights, decay=decay)
    total = sum(weights)
    if total <= 0:
        return [0.0] * len(rewards), after
    low, high = min(rewards), max(rewards)
    batch_mean = sum(r * w for r, w in zip(rewards, weights, strict=True)) / total
    # A mean of equal numbers may round away from them; A must then be exactly 0.
    value = min(after.mean, max(low, min(high, batch_mean)))
    return [w * (r - value) for r, w in zip(rewards, weights, strict=True)], after


def kept(rewards: Sequence[float], weights: Sequence[float], words: Sequence[float]) -> list[float]:
    """What is left of each rating where words stand in its place, in [0, 1].

    `words` are how much they say of each answer, w · mean_t |ω · d_t|: the whole rating is |ω · r|.
    """
    return [
        max(0.0, 1.0 - said / abs(weight * reward)) if weight * reward else 1.0
        for reward, weight, said in zip(rewards, weights, words, strict=True)
    ]


def to_learn(
    baseline: Baseline,
    rewards: Sequence[float],
    weights: Sequence[float],
    advantages: Sequence[float],
    words: Sequence[float] = (),
) -> float:
    """How much a round has to teach, in [0, 1]: min(1, max(mean |A|, mean |ω · (r - m)|) + mean h), with m
    the baseline before the round and h what `words` say, |A|'s like, of each answer. The learning rate is
    multiplied by it.

    AdamW divides every gradient by its own size, so that a round whose ratings were nearly all
    expected would otherwise step as far as one that says something new, along its noise. The second
    mean is there for a round that is worse than expected throughout: the cap on V hides that from A.
    """
    said = sum(words)
    if not any(advantages):
        return min(1.0, said / max(len(rewards), 1)) if said else 0.0
    surprise = [abs(a) for a in advantages]
    if baseline.weight:
        news = [w * abs(r - baseline.mean) for r, w in zip(rewards, weights, strict=True)]
        surprise = max(surprise, news, key=sum)
    return min(1.0, (sum(surprise) + said) / len(surprise))
