# SPDX-License-Identifier: Apache-2.0
"""Batches: deterministic, fair, complete, padded."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
from goodbot_training.job.types import TrainingSettings
from goodbot_training.round.batches import make_batches, normalizer, order, planned_steps
from hypothesis import given
from hypothesis import strategies as st

from tests.training.factories import make_rollout

counts = st.integers(1, 40)


def rollouts(count: int) -> list:
    return [make_rollout(index, length=1 + index % 5) for index in range(count)]


@given(counts, st.integers(1, 9), st.integers(1, 20), st.integers(0, 2**32))
def test_a_round_is_complete_fair_and_repeatable(count: int, batch_size: int, steps: int, seed: int) -> None:
    chosen = TrainingSettings(batch_size=batch_size, steps=steps)
    items = rollouts(count)
    advantages = [float(index) for index in range(count)]
    one, two = (list(make_batches(items, advantages, chosen, seed=seed)) for _ in range(2))
    assert len(one) == planned_steps(count, chosen) <= max(steps, -(-count // batch_size))
    seen: Counter[float] = Counter()
    for batch, again in zip(one, two, strict=True):
        assert len(batch.sequences) == len(batch.temperature) == batch_size
        assert batch.advantages.tolist() == again.advantages.tolist()
        seen.update(batch.advantages.tolist())
    looks = [seen[advantage] for advantage in advantages]
    assert min(looks) >= 1, "none is left out"
    assert max(looks) - min(looks) <= 1, "each about equally often"
    assert sum(looks) < chosen.max_passes * count + batch_size
    assert len({batch.normalizer for batch in one}) == 1, "constant over the round"


@given(counts, st.integers(0, 1000))
def test_an_epoch_repeats_nothing(count: int, seed: int) -> None:
    indices = list(islice(order(count, seed=seed), 3 * count))
    for epoch in range(3):
        assert sorted(indices[epoch * count : (epoch + 1) * count]) == list(range(count))


def test_another_seed_is_another_order() -> None:
    assert len({tuple(islice(order(20, seed=seed), 20)) for seed in range(5)}) == 5


def test_few_ratings_make_few_steps() -> None:
    chosen = TrainingSettings(steps=32, batch_size=8, max_passes=16)
    assert [planned_steps(n, chosen) for n in (1, 5, 16, 32, 256)] == [2, 10, 32, 32, 32]
    assert list(make_batches([], [], chosen, seed=0)) == []


def test_many_ratings_are_each_seen_once_at_least() -> None:
    """More than 96 steps of eight have room for."""
    chosen = TrainingSettings()
    assert [planned_steps(n, chosen) for n in range(1, 769)] == [min(n, 96) for n in range(1, 769)]
    assert [planned_steps(n, chosen) for n in (769, 776, 777, 1000)] == [97, 97, 98, 125]
    batches = make_batches(rollouts(1000), [float(n) for n in range(1000)], chosen, seed=3)
    assert {advantage for batch in batches for advantage in batch.advantages} == set(range(1000))


def test_padding_and_the_normalizer() -> None:
    items = [make_rollout(0, length=1), make_rollout(1, length=4)]
    chosen = TrainingSettings(batch_size=2, steps=1)
    assert normalizer(items, chosen) == 5.0
    (batch,) = make_batches(items, [0.5, -0.5], chosen, seed=1)
    row = batch.advantages.tolist().index(0.5)
    assert batch.mask.sum(1).tolist() == ([1, 4] if row == 0 else [4, 1])
    assert batch.sampling_logprobs[row].tolist() == [-1, 0, 0, 0]
    assert batch.reference_logprobs[1 - row].tolist() == [-3, -3, -3, -3]
    assert all(
        array.dtype == np.float32 for array in (batch.mask, batch.sampling_logprobs, batch.reference_logprobs)
    )
