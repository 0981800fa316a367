# SPDX-License-Identifier: Apache-2.0
"""When a new version has lost: a pure function of a few choices."""

from __future__ import annotations

import pytest
from goodbot.learning.evaluation.rule import is_certain, loses
from goodbot.store.comparisons import Tally


@pytest.mark.parametrize(("old", "new"), [(3, 0), (4, 0), (5, 0), (4, 1), (5, 1), (6, 2), (7, 3), (12, 7)])
def test_a_clear_majority_against_it_loses(old: int, new: int) -> None:
    assert loses(Tally(old=old, new=new))
    assert not loses(Tally(old=new, new=old)), "the same choices for it are no loss"


@pytest.mark.parametrize(
    ("old", "new"), [(0, 0), (1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (3, 3), (1, 4)]
)
def test_a_few_choices_or_a_close_race_do_not(old: int, new: int) -> None:
    assert not loses(Tally(old=old, new=new))


def test_what_is_the_same_or_skipped_speaks_for_neither() -> None:
    assert loses(Tally(old=3, same=40, skip=40))
    assert not loses(Tally(old=2, same=1, skip=2))


def test_it_is_certain_once_no_open_choice_can_turn_it() -> None:
    assert is_certain(Tally(old=4, open=1)), "4 : 1 is lost as well"
    assert not is_certain(Tally(old=3, open=2)), "3 : 2 would not be"
    assert is_certain(Tally(new=2, old=1, open=2)), "1 : 2 and two more against it: 3 : 2"
    assert not is_certain(Tally(new=1, open=4)), "4 : 1 could come"
    assert is_certain(Tally(skip=5))
    assert is_certain(Tally()), "nothing was asked"


def test_by_luck_alone_it_is_lost_in_a_fifth_of_all_cases_at_most() -> None:
    for n in range(1, 11):
        sequences = [bin(bits).count("1") for bits in range(2**n)]
        lost = sum(loses(Tally(old=old, new=n - old)) for old in sequences)
        assert lost <= 0.2 * len(sequences), n
