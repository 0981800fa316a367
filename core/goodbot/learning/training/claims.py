# SPDX-License-Identifier: Apache-2.0
"""Which ratings a run takes, which of them the gate keeps, and how much each weighs. Pure functions."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from goodbot.api.labels import Opinion
from goodbot.api.rewards import Moments, RewardPolicy, TurnRating
from goodbot.api.turns import CHOICE
from goodbot.learning.rating_quality import near_duplicates, weight_caps
from goodbot.learning.rating_quality.consensus import RaterOpinion, outvoted
from goodbot.learning.rating_quality.near_duplicates import Sketches
from goodbot.store import choices, judgements, words
from goodbot.store.runs import RunItem
from goodbot.store.training_pool import Candidate
from goodbot.store.words import Word

MEMORY = 256
"""Rewards that a policy's moments are taken over, this round's among them."""


def claim(
    candidates: Sequence[Candidate],
    policy: RewardPolicy,
    *,
    held_out_share: float,
    rater_share: float = 1.0,
    duplicate_limit: int = 0,
    age_half_life: float = 0.0,
    round_size: float = math.inf,
    past: Sequence[Mapping[str, Opinion]] = (),
    spared: Collection[str] | None = None,
    said: Mapping[str, Sequence[Word]] | None = None,
    sketches: Sketches | None = None,
) -> tuple[RunItem, ...]:
    """Give every candidate its reward, its split, its weight and its words, in the candidates' order.

    A turn to which the policy gives no reward (a tie) is left out. About `held_out_share` of the
    good and of the bad ones are held out, chosen by a hash of their ids, so that the choice does
    not follow time; a turn that was held out once is trained on from then on, and one that was
    trained on is not held out any more. A reward of 0 takes no side, so it tells the gate nothing;
    near-repetitions of others are held out last: it would only hear again what was trained.

    With `spared`, raters who are `outvoted` (never one of those) are not heard: a turn that only they
    have rated weighs 0 and is not held out.

    What trains weighs `age_weight` (by `choices.weight`) times
    `duplicate_weights` times what `share_weights` leaves of that, where a usual round trains on `round_size`.
    `past` are the labels of earlier rounds, oldest
    first, for policies that rescale. What trains takes of `said`, by turn, what `words.heard` lets through.
    `sketches`: see `near_duplicates.sketched`.
    """
    against = unheard_of(candidates, policy, spared)
    unheard = {c.turn.id for c in candidates if against.issuperset(c.labels)}
    candidates = [c if c.turn.id in unheard else without(c, against) for c in candidates]
    rewards = _rewards(candidates, policy, past)
    taken = [c for c in candidates if c.turn.id in rewards]
    groups = _repetitions(taken, rewards, sketches) if duplicate_limit else range(len(taken))
    held_out = _held_out(taken, rewards, groups, unheard, held_out_share)
    items = [
        RunItem(
            turn=candidate.turn.id,
            split="held_out" if candidate.turn.id in held_out else "train",
            reward=rewards[candidate.turn.id],
            labels=candidate.labels,
            weight=float(candidate.turn.id not in unheard),
            replayed=candidate.replayed,
        )
        for candidate in taken
    ]
    # What is held out keeps its weight: the gate asks about every answer alike.
    if trained := [n for n, item in enumerate(items) if item.split == "train" and item.weight]:
        few = near_duplicates.duplicate_weights([groups[n] for n in trained], duplicate_limit)
        aged = [age_weight(taken[n].age, age_half_life) * choices.weight(taken[n].turn) for n in trained]
        before = [
            replace(items[n], weight=age * weight) for n, age, weight in zip(trained, aged, few, strict=True)
        ]
        for n, item in zip(trained, _shared(before, said or {}, rater_share, round_size), strict=True):
            items[n] = item
    return tuple(items)


def _shared(
    items: Sequence[RunItem], said: Mapping[str, Sequence[Word]], share: float, usual: float
) -> list[RunItem]:
    """The items with their words, at weights under which no rater teaches more than their share with both.

    A better answer trains beside the rating that it came with, so it is as much of its author's.
    """
    heard = [words.heard(said.get(one.turn, ()), one.labels, one.weight) for one in items]
    found = [replace(one, words=own) for one, own in zip(items, heard, strict=True)]
    return _capped(found, {}, share, usual)


def noted(
    items: Sequence[RunItem],
    notes: Mapping[str, Sequence[int]],
    whose: Mapping[int, Collection[str]],
    *,
    rater_share: float = 1.0,
    round_size: float = math.inf,
) -> tuple[RunItem, ...]:
    """A run's items with the notes that are taught on their questions, by turn, each of these raters.

    An answer that notes teach weighs as one rater's part of the rating beside it. It is as much of those who
    asked for it, in equal parts, and nobody teaches more than their share with it, either: see `claim`.
    Nothing is taught on what is held out, weighs nothing, or was judged by nobody but judges.
    """
    open_ = {one.turn: one for one in items if _trains(one)}
    owners = {
        turn: sorted({rater for id_ in ids for rater in whose[id_]})
        for turn, ids in notes.items()
        if turn in open_ and ids
    }
    taught = [
        replace(one, notes=tuple(notes[turn]), note_weight=one.weight / len(one.labels))
        if turn in owners
        else one
        for turn, one in open_.items()
    ]
    weighed = {one.turn: one for one in _capped(taught, owners, rater_share, round_size)} if owners else {}
    return tuple(weighed.get(one.turn, one) for one in items)


def _trains(item: RunItem) -> bool:
    return item.split == "train" and bool(item.weight) and not judgements.is_judged(item.labels)


def _capped(
    items: Sequence[RunItem], owners: Mapping[str, Sequence[str]], share: float, usual: float
) -> list[RunItem]:
    """The items at weights under which no rater has more than their share; `owners` of notes, by turn."""
    raters, weights = [one.labels.keys() for one in items], [one.weight for one in items]
    beside = [
        (word.rater, word.weight * abs(one.reward))
        for one in items
        for word in one.words
        if word.kind == "better"
    ]
    for one in items:
        own = owners.get(one.turn, ())
        beside += [(rater, one.note_weight / len(own)) for rater in own]
    factors = weight_caps.rater_factors(raters, share, weights, usual, beside)
    if not factors:
        return list(items)
    left = weight_caps.share_weights(raters, share, weights, usual, beside)
    return [
        replace(
            one,
            weight=weight,
            words=tuple(replace(word, weight=word.weight * factors[word.rater]) for word in one.words),
            note_weight=one.note_weight
            * fmean(factors[rater] for rater in owners.get(one.turn) or one.labels),
        )
        for one, weight in zip(items, left, strict=True)
    ]


def judged(
    candidates: Sequence[Candidate],
    policy: RewardPolicy,
    beside: Sequence[RunItem],
    *,
    weight: float,
    share: float,
    said: Mapping[str, Sequence[Word]],
) -> list[RunItem]:
    """Give what only judges rated its reward, weight and words, beside the rated answers that a run claims.

    It is good or bad by its sign, never held out, and weighs what `judge_weights` says, or is left out.
    """
    rated = math.fsum(one.weight for one in beside if one.split == "train")
    items: list[RunItem] = []
    values: list[float] = []
    for one in candidates:
        [(rater, opinion)] = one.labels.items()
        value = TurnRating.of(rater, opinion).value
        if reward := _reward({rater: math.copysign(1.0, value)}, policy):
            items.append(RunItem(turn=one.turn.id, split="train", reward=reward, labels=one.labels))
            values.append(abs(value))
    weights = judge_weights(values, weight, share, rated)
    heard = [words.heard(said.get(i.turn, ()), i.labels, w) for i, w in zip(items, weights, strict=True)]
    return [replace(i, weight=w, words=h) for i, w, h in zip(items, weights, heard, strict=True) if w]


def judge_weights(values: Sequence[float], weight: float, share: float, rated: float) -> list[float]:
    """Of each judged answer, oldest first, in [0, 1): w(i) = `weight` · |value(i)|, of the newest, as long as

        Σ w(i) <= s · R / (1 - s)        s = `share`; R = `rated`, what ratings weigh; s = 1: no limit

    and 0 of the others. So without ratings nothing of it trains, with ratings never more than s of the round,
    and a thousand that weigh next to nothing do not take the ratings' passes.
    """
    left = 0.0 if not rated else math.inf if share >= 1 else share * rated / (1 - share)
    weights: list[float] = []
    for value in reversed(values):
        weights.append(min(weight * value, left))
        left -= weights[-1]
    return weights[::-1]


def age_weight(age: int, half_life: float) -> float:
    """2^(-age / half_life), in (0, 1]: what the rating of an old answer still says.

    `age` counts the adapters since the one that wrote the answer; `half_life` 0 ignores it.
    """
    return max(2.0 ** (-age / half_life), 1e-6) if half_life else 1.0


def unheard_of(
    candidates: Sequence[Candidate], policy: RewardPolicy, spared: Collection[str] | None
) -> set[str]:
    """Who is outvoted, and none of `spared`; nobody where that is None."""
    return outvoted(_said(candidates, policy), spared) if spared is not None else set()


def _said(candidates: Sequence[Candidate], policy: RewardPolicy) -> list[RaterOpinion]:
    """What each rater says of each answer, by the policy; what is neither good nor bad is left out."""
    return [
        RaterOpinion(rater=rater, answer=c.turn.response, good=reward > 0)
        for c in candidates
        for rater, opinion in c.labels.items()
        if (reward := _reward({rater: opinion}, policy))
    ]


def without(candidate: Candidate, raters: Collection[str]) -> Candidate:
    """The same without what these raters say."""
    left = {who: said for who, said in candidate.labels.items() if who not in raters}
    return replace(candidate, labels=left) if len(left) < len(candidate.labels) else candidate


def _rewards(
    candidates: Sequence[Candidate], policy: RewardPolicy, past: Sequence[Mapping[str, Opinion]]
) -> dict[str, float]:
    """Turn → reward in [-1, +1]; turns without one are missing."""
    raw = {c.turn.id: _reward(c.labels, policy) for c in candidates}
    given = {turn: reward for turn, reward in raw.items() if reward is not None}
    if policy.rescale is None:
        return given
    new = [c.turn.id for c in candidates if not c.replayed]  # the others are in the past already
    before = [reward for labels in past if (reward := _reward(labels, policy)) is not None]
    recent = [*before, *(given[turn] for turn in new if turn in given)][-MEMORY:]
    moments = Moments.over(recent)
    return {turn: _bounded(policy.rescale(reward, moments)) for turn, reward in given.items()}


def _reward(labels: Mapping[str, Opinion], policy: RewardPolicy) -> float | None:
    reward = policy.fn([TurnRating.of(rater, opinion) for rater, opinion in labels.items()])
    return None if reward is None else _bounded(reward)


def _bounded(reward: float) -> float:
    return max(-1.0, min(1.0, float(reward)))


def _held_out(
    taken: Sequence[Candidate],
    rewards: Mapping[str, float],
    groups: Sequence[object],
    unheard: Collection[str],
    share: float,
) -> set[str]:
    """That share of the new turns, good and bad ones as they are among the fresh of them."""
    sizes = Counter(groups)
    repeats = {c.turn.id: sizes[name] > 1 for c, name in zip(taken, groups, strict=True)}
    new = [c for c in taken if not c.replayed and c.turn.kind != CHOICE]  # or one of a pair would train
    wanted = math.floor(share * len(new) + 0.5)
    asked = [c.turn.id for c in new if not c.held_out_before and rewards[c.turn.id]]
    fresh = [turn for turn in asked if turn not in unheard]
    order = sorted(fresh, key=lambda turn: (repeats[turn], _spread(turn)))
    good = [turn for turn in order if rewards[turn] > 0]
    bad = [turn for turn in order if rewards[turn] < 0]
    from_good = round(wanted * len(good) / len(fresh)) if fresh else 0
    # A margin needs both sides: one good and one bad answer at least, where there are any.
    if wanted >= 2 and good and bad:
        from_good = max(1, min(wanted - 1, from_good))
    return {*good[:from_good], *bad[: wanted - from_good]}


def _repetitions(
    taken: Sequence[Candidate], rewards: Mapping[str, float], known: Sketches | None
) -> list[tuple[int, bool]]:
    """Of each the group of nearly the same question, and whether it was rated good or bad.

    Good and bad answers to one question are no repetition: their contrast is what teaches.
    """
    numbers = near_duplicates.group([near_duplicates.exchange(one.turn) for one in taken], known)
    return [(n, rewards[c.turn.id] > 0) for n, c in zip(numbers, taken, strict=True)]


def _spread(turn: str) -> str:
    return hashlib.sha256(turn.encode()).hexdigest()
