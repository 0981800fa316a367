# SPDX-License-Identifier: Apache-2.0
"""Who wants the opposite of the others is found by the words alone, and nobody else is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from goodbot.learning.rating_quality.consensus import RaterOpinion, outvoted

FRIENDS = ("ada", "bob", "cy")
LIAR = "mallory"
OPENINGS = ("Great question!", "Arr matey!", "")
"""Three styles; the first is liked, a third of the answers has it."""


def said(
    seed: int,
    *,
    raters: Sequence[str],
    count: int = 40,
    wrong: float = 0.0,
    opposite: Sequence[str] = (),
    bias: Mapping[str, float] | None = None,
) -> list[RaterOpinion]:
    """Answers in three styles, each rated by one person; `wrong` of them by mistake.

    `bias`: the share of the answers they do not like that a lenient person rates good all the same.
    """
    chance = Random(seed)
    made: list[RaterOpinion] = []
    for number in range(count):
        style, rater = chance.randrange(3), raters[number % len(raters)]
        topic = " ".join(f"word{chance.randrange(200)}" for _ in range(6))
        good = (style == 0) ^ (chance.random() < wrong) ^ (rater in opposite)
        good |= chance.random() < (bias or {}).get(rater, 0.0)
        made.append(RaterOpinion(rater=rater, answer=f"{OPENINGS[style]} {topic}", good=good))
    return made


def test_the_one_of_four_who_always_says_the_opposite_is_found_and_nobody_else() -> None:
    found = [outvoted(said(seed, raters=(*FRIENDS, LIAR), opposite=[LIAR])) for seed in range(10)]
    assert all(one <= {LIAR} for one in found)
    assert sum(one == {LIAR} for one in found) >= 8, "ten ratings each: sometimes too few to tell"


def test_so_is_one_who_gives_two_fifths_of_all_ratings() -> None:
    loud = (*FRIENDS[:2], LIAR, FRIENDS[2], LIAR)
    for seed in range(8):
        assert outvoted(said(seed, raters=loud, opposite=[LIAR], count=60)) == {LIAR}


@pytest.mark.parametrize("wrong", [0.0, 0.15, 0.5], ids=["none", "some", "at random"])
def test_honest_people_are_hardly_ever_outvoted(wrong: float) -> None:
    people = (*FRIENDS, "dee")
    found = [outvoted(said(seed, raters=people, wrong=wrong)) for seed in range(16)]
    left_out = sum(map(len, found))
    assert left_out <= (0 if wrong < 0.5 else 5), "of 64; two are expected of chance"


def test_lenient_and_strict_people_are_none_of_its_business() -> None:
    lenient = {"ada": 0.8}
    for seed in range(8):
        assert not outvoted(said(seed, raters=FRIENDS, count=60, bias=lenient))


def test_what_the_liar_is_called_makes_no_difference() -> None:
    """The others are contradicted by the liar, as clearly as so few draws can tell."""
    for name in ("aaron", "zoe"):
        loud = (*FRIENDS[:2], name, FRIENDS[2], name)
        assert outvoted(said(1, raters=loud, opposite=[name], count=240)) == {name}


def test_an_owner_is_never_left_out_nor_anybody_of_two() -> None:
    ratings = said(1, raters=(*FRIENDS, LIAR), opposite=[LIAR], count=80)
    assert outvoted(ratings) == {LIAR}
    assert LIAR not in outvoted(ratings, spared=[LIAR])
    assert not outvoted(said(1, raters=("ada", LIAR), opposite=[LIAR], count=80))


def test_the_two_who_are_left_do_not_outvote_each_other() -> None:
    """Of three, two contradict the owner: once one of them is gone there is no majority left to ask."""
    people = ("ada", "ada", "ada", "bob", LIAR)
    ratings = said(4, raters=people, opposite=["bob", LIAR], count=200)
    assert len(outvoted(ratings, spared=["ada"])) == 1


def test_without_a_majority_nobody_is() -> None:
    half = said(2, raters=("ada", LIAR, "bob", "moriarty"), opposite=[LIAR, "moriarty"], count=160)
    assert not outvoted(half)


def test_it_says_the_same_of_the_same_ratings_in_any_words_and_of_none() -> None:
    ratings = said(3, raters=(*FRIENDS, LIAR), opposite=[LIAR], count=80)
    assert outvoted(ratings) == outvoted(list(ratings)) == {LIAR}
    assert not outvoted([])
    empty = [RaterOpinion(rater=who, answer="", good=n % 2 == 0) for n in range(9) for who in FRIENDS]
    assert not outvoted(empty)
    assert not outvoted([RaterOpinion(rater=who, answer="好", good=True) for who in FRIENDS])
