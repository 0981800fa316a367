# SPDX-License-Identifier: Apache-2.0
"""How versions stand by blind choices: computed by hand where that can be done."""

from __future__ import annotations

import math

import pytest
from goodbot.api.versions import BlindPlace
from goodbot.learning.evaluation.leaderboard import bases, places
from goodbot.store.comparisons import Sum, Tally


def chosen(old: int, new: int, against: int, for_it: int, same: int = 0, skip: int = 0) -> Sum:
    tally = Tally(old=against, new=for_it, same=same, skip=skip)
    return Sum(old=old, new=new, state="passed", tally=tally)


def by_version(*sums: Sum) -> dict[int, BlindPlace]:
    return {one.version: one for one in places(sums)}


def test_two_versions_by_hand() -> None:
    """3 : 1, with half a choice more for each: ln(3.5 / 1.5) = 0.8473, √(1/3.5 + 1/1.5) = 0.9759."""
    [best, base] = places([chosen(0, 1, 1, 3)])
    assert (best.version, best.by, best.choices) == (1, 0, 4)
    assert best.share == pytest.approx(3.5 / 5)
    assert best.low == pytest.approx(1 / (1 + math.exp(-0.84730 + 1.95996 * 0.97590)), abs=1e-4)
    assert (round(best.low, 4), round(best.high, 4)) == (0.2563, 0.9405)
    assert (base.version, base.share, base.low, base.high) == (0, 0.5, 0.5, 0.5)


def test_along_a_line_strengths_and_variances_add_up() -> None:
    found = by_version(chosen(0, 1, 1, 3), chosen(1, 2, 2, 7))
    strength = math.log(3.5 / 1.5) + math.log(7.5 / 2.5)
    error = math.sqrt(1 / 3.5 + 1 / 1.5 + 1 / 7.5 + 1 / 2.5)
    assert found[2].share == pytest.approx(1 / (1 + math.exp(-strength)))
    assert found[2].high == pytest.approx(1 / (1 + math.exp(-strength - 1.959964 * error)))
    assert list(found) == [2, 1, 0], "the best first"


def test_in_a_circle_without_a_better_one_all_are_as_good() -> None:
    found = by_version(chosen(0, 1, 1, 4), chosen(1, 2, 1, 4), chosen(0, 2, 4, 1))
    assert [one.share for one in found.values()] == pytest.approx([0.5] * 3)
    # Of three, each two compared n = 6 times: the information is n/4 · (2 −1; −1 2), a variance 8/(3n).
    assert found[1].high == pytest.approx(1 / (1 + math.exp(-1.959964 * math.sqrt(8 / 18))))


def test_the_same_is_half_a_choice_and_a_skipped_one_is_none() -> None:
    assert by_version(chosen(0, 1, 1, 2, same=2, skip=5))[1].share == pytest.approx((2 + 1 + 0.5) / 6)
    assert by_version(chosen(0, 1, 0, 0, same=1))[1].choices == 1
    assert places([chosen(0, 1, 0, 0, skip=3)]) == []
    assert places([]) == []


def test_two_comparisons_of_the_same_two_are_one() -> None:
    assert by_version(chosen(0, 1, 1, 1), chosen(1, 0, 2, 0)) == by_version(chosen(0, 1, 1, 3))


def test_what_no_choice_connects_with_the_newest_has_no_place() -> None:
    found = by_version(chosen(0, 1, 1, 3), chosen(2, 3, 1, 3))
    assert set(found) == {2, 3}
    assert found[3].by == 2


def test_one_that_always_won_stays_finite_and_many_are_fitted() -> None:
    line = [chosen(n, n + 1, 0, 50) for n in range(40)]
    found = by_version(*line)
    assert len(found) == 41
    assert found[1].share == pytest.approx(50.5 / 51)
    assert 0.5 < found[1].low < found[1].share < found[1].high < 1
    assert next(iter(found)) == 40


def test_base_models_stand_by_what_was_chosen_over_them_as_they_came() -> None:
    """Planted strengths 1 and −0.5: of so many choices the share is near 1 / (1 + exp(−strength))."""
    many = 10_000
    strengths = {"better": 1.0, "worse": -0.5, "as good": 0.0}
    won = {name: round(many / (1 + math.exp(-strength))) for name, strength in strengths.items()}
    found = bases({name: Tally(new=new, old=many - new) for name, new in won.items()})
    assert [one.model for one in found] == ["better", "as good", "worse"]
    for one in found:
        assert math.log(one.share / (1 - one.share)) == pytest.approx(strengths[one.model], abs=1e-3)
        assert one.low < one.share < one.high
        error = math.log(one.high / (1 - one.high)) - math.log(one.share / (1 - one.share))
        new, old = won[one.model] + 0.5, many - won[one.model] + 0.5
        assert error == pytest.approx(1.959964 * math.sqrt(1 / new + 1 / old), abs=1e-6)
        assert one.choices == many


def test_a_base_model_of_which_nobody_has_chosen_is_not_listed() -> None:
    assert bases({"skipped": Tally(skip=3), "none": Tally()}) == []
    [one] = bases({"one": Tally(same=1), "none": Tally()})
    assert (one.model, one.share, one.choices) == ("one", pytest.approx(0.5), 1)
