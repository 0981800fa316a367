# SPDX-License-Identifier: Apache-2.0
"""The most that one rater weighs in a round."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from goodbot.learning.rating_quality.weight_caps import share_weights
from hypothesis import given
from hypothesis import strategies as st

crowds = st.lists(st.frozensets(st.sampled_from("abcdefg"), min_size=1), max_size=40)
counts = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def of(*ratings: int) -> list[list[str]]:
    """So many answers, each rated by one of as many raters."""
    return [[f"r{who}"] for who, count in enumerate(ratings) for _ in range(count)]


def held(*ratings: int, share: float = 0.25, usual: float = math.inf) -> list[float]:
    """What each rater has in the end, of so many answers each."""
    turns = of(*ratings)
    weights = share_weights(turns, share, usual=usual)
    return [
        sum(w for (rater,), w in zip(turns, weights, strict=True) if rater == f"r{who}")
        for who in range(len(ratings))
    ]


@pytest.mark.parametrize(
    ("ratings", "weighs"),
    [
        ((40,), (40,)),
        ((39, 1), (39, 1)),
        ((38, 1, 1), (38, 1, 1)),  # 1 + ¼ + ¼ raters
        ((33, 4, 3), (33, 4, 3)),  # 1 + 1 + ¾
        ((32, 4, 4), (4, 4, 4)),  # three, a third each: L = (L + 8) / 3
        ((20, 10, 10), (10, 10, 10)),
        ((20, 20, 20, 1), (20, 20, 20, 1)),  # shared among three, and nobody has more than a third
        ((9, 9, 9, 3), (9, 9, 9, 3)),  # among 3 + 3/3.75: the fourth cuts nobody down
        ((31, 10, 10, 10), (10, 10, 10, 10)),  # among four: a quarter each
        ((30, 4, 3, 3, 2), (6, 4, 3, 3, 2)),  # 1 + 12/4.2 raters, a third: L = (L + 12) / 3
        ((30, 6, 6, 6, 6, 6), (10, 6, 6, 6, 6, 6)),  # among 1 + 30/7.5: L = (L + 30) / 4
        ((24, *[3] * 12), (12, *[3] * 12)),  # small ones count together: among 1 + 36/7.5
    ],
)
def test_by_hand(ratings: tuple[int, ...], weighs: tuple[float, ...]) -> None:
    assert held(*ratings) == pytest.approx(weighs)


@given(counts, st.floats(0.05, 1.0))
def test_no_rater_has_more_than_the_share_and_the_round_never_shrinks_to_nothing(
    ratings: list[int], share: float
) -> None:
    total = sum(ratings)
    weighs = held(*ratings, share=share)
    raters, among = (int(sum(min(1.0, part * count / total) for count in ratings) + 1e-9) for part in (10, 8))
    if raters < 3:
        assert weighs == ratings
        return
    assert max(weighs) <= max(share, 1 / max(3, among)) * sum(weighs) * (1 + 1e-9)
    assert sum(weighs) >= 0.3 * total * (1 - 1e-9)
    level = max(weighs)
    for count, weight in zip(ratings, weighs, strict=True):
        assert weight == pytest.approx(min(count, level)), "only who is above it is cut down"


@given(crowds, st.floats(0.05, 1.0), st.data())
def test_weights_are_above_zero_never_grow_and_ignore_the_order(
    turns: list[frozenset[str]], share: float, data: Any
) -> None:
    before = data.draw(st.lists(st.floats(0.01, 1), min_size=len(turns), max_size=len(turns)))
    weights = share_weights(turns, share, before)
    assert all(0 < new <= old * (1 + 1e-9) for new, old in zip(weights, before, strict=True))
    order = data.draw(st.permutations(range(len(turns))))
    shuffled = share_weights([turns[i] for i in order], share, [before[i] for i in order])
    assert shuffled == pytest.approx([weights[i] for i in order])


@given(counts, st.floats(0.05, 1.0))
def test_who_rates_more_never_weighs_less(ratings: list[int], share: float) -> None:
    weighs = [weight for _, weight in sorted(zip(ratings, held(*ratings, share=share), strict=True))]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(weighs))


def test_an_adversary_of_four_gets_a_quarter_however_much_he_rates() -> None:
    for count in (10, 30, 60, 400, 5000):
        assert held(count, 10, 10, 10, usual=32) == pytest.approx([10, 10, 10, 10])
    assert held(5000, 1, 1, usual=32)[0] == 5000, "two others of one rating each are no company"


def test_puppets_neither_free_their_master_nor_cut_down_who_rates_alone() -> None:
    alone = held(60, 20, 20, 20)[0]
    assert alone == pytest.approx(20)
    master, _, _, _, *puppets = held(60, 20, 20, 20, *[1] * 12)
    assert master - alone <= sum(puppets) / 3 + 1e-9
    owner, *rest = held(48, *[1] * 12)
    assert (owner, sum(rest)) == pytest.approx((6, 12))
    assert held(49, *[1] * 11)[0] == 49, "less than a fifth in small accounts brings no cap"
