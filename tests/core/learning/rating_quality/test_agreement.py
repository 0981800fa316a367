# SPDX-License-Identifier: Apache-2.0
"""How far raters agree: Cohen's kappa against most of the others, and nothing where it says nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from goodbot.learning.rating_quality.agreement import FEWEST, agreements
from goodbot.store.vote_history import Vote


def votes(said: Mapping[str, str]) -> list[Vote]:
    """By rater a letter an answer: g good, b bad, - nothing."""
    return [
        Vote(turn=str(turn), rater=rater, good=letter == "g", time=0.0, seq=turn)
        for rater, letters in said.items()
        for turn, letter in enumerate(letters)
        if letter != "-"
    ]


def test_always_by_chance_and_never() -> None:
    half = "gb" * FEWEST
    found = agreements(votes({"a": half, "b": half}))
    assert {rater: one.kappa for rater, one in found.items()} == {"a": 1.0, "b": 1.0}
    assert found["a"].answers == 2 * FEWEST
    found = agreements(votes({"a": half, "b": "bg" * FEWEST}))
    assert found["a"].kappa == found["b"].kappa == -1.0
    found = agreements(votes({"a": "gb" * FEWEST, "b": "ggbb" * (FEWEST // 2)}))
    assert found["a"].kappa == pytest.approx(0.0)


def test_as_cohen_s_own_sum() -> None:
    both = {"gg": 20, "gb": 5, "bg": 10, "bb": 15}
    pairs = [pair for pair, count in both.items() for _ in range(count)]
    found = agreements(votes({"a": "".join(one[0] for one in pairs), "b": "".join(one[1] for one in pairs)}))
    assert found["a"].kappa == pytest.approx(0.4)


@pytest.mark.parametrize(
    "said",
    [
        {"a": "gb" * FEWEST},
        {"a": "gb" * (FEWEST // 2 - 1) + "g-", "b": "gb" * (FEWEST // 2)},
        {"a": "g" * FEWEST, "b": "g" * FEWEST},
        {"a": "g" * FEWEST, "b": "gb" * (FEWEST // 2)},
    ],
    ids=["nobody else", "too few", "never bad", "one of them never bad"],
)
def test_nothing_where_it_would_say_nothing(said: Mapping[str, str]) -> None:
    assert "a" not in agreements(votes(said))


def test_others_who_are_as_many_on_both_sides_tell_nothing() -> None:
    half = "gb" * FEWEST
    found = agreements(votes({"a": half, "b": half, "c": "bg" * FEWEST}))
    assert "a" not in found
    assert "b" not in found  # against `a` and `c`, who never agree
    assert found["c"].kappa == -1.0
