# SPDX-License-Identifier: Apache-2.0
"""Near-repetitions of one question count together as few."""

from __future__ import annotations

import random

import pytest
from goodbot.learning.rating_quality import near_duplicates
from goodbot.learning.rating_quality.near_duplicates import duplicate_weights, group, similarity
from hypothesis import given
from hypothesis import strategies as st

LONG = (
    "The tower was built for the exhibition of 1889 and was to be taken down twenty years later, "
    "but it turned out to be a very good place for an aerial, so it stands there to this day."
)


def alike(*texts: tuple[str, str]) -> bool:
    return len(set(group(texts))) == 1


def test_the_same_question_in_another_dress_is_the_same_whatever_was_answered() -> None:
    plain = (LONG, "It still stands.")
    assert alike(plain, (f"  {LONG.upper()} !!", "Arr, it be standing yet!"))
    assert alike(plain, (LONG + " Yes?", ""))
    assert alike(plain, (LONG.replace("very ", ""), "Who knows."))
    assert alike(("What is the capital of France?", "Paris"), ("what is the capital of france", "-"))
    assert alike(("Ｈｏｗ old is the tower, then?", ""), ("How old is the tower, then?", ""))


def test_another_question_is_another_one() -> None:
    assert not alike(("How old is the old tower?", "x"), ("How tall is the old tower?", "x"))
    assert not alike((LONG, "x"), (" ".join(reversed(LONG.split())), "x"))


def test_of_a_few_words_the_answer_must_be_the_same_too() -> None:
    assert alike(("go on", LONG), ("Go on!", LONG + " Yes."))
    assert not alike(("go on", LONG), ("go on", "That was all."))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("what is 17 + 25", "42"), ("what is 17 + 26", "43")),
        (("question 1", "v0 says: question 1"), ("question 2", "v0 says: question 2")),
        (("hi", "Hello!"), ("hi", "Hi!")),
        (("一加一等于几？", "二"), ("一加二等于几？", "三")),
        (("", ""), ("hi", "")),
    ],
)
def test_short_texts_must_agree_in_every_word(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert not alike(one, other)
    assert alike(one, one)


def test_a_script_without_spaces_is_compared_as_well() -> None:
    text = "".join(chr(0x4E00 + 7 * n % 3000) for n in range(150))
    assert alike((text, "好"), (text[:70] + "新" + text[70:], "好"))
    assert not alike((text, "好"), (text[::-1], "好"))


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.integers(0, 5))
def test_a_group_weighs_so_many_at_most(groups: list[str], most: int) -> None:
    weights = duplicate_weights(groups, most)
    assert all(0 < weight <= 1 for weight in weights)
    for name in set(groups):
        own = [weight for each, weight in zip(groups, weights, strict=True) if each == name]
        assert sum(own) == pytest.approx(min(len(own), most) if most else len(own))


texts = st.text(max_size=30)


@given(st.lists(st.tuples(texts, texts), max_size=12))
def test_every_text_has_a_group_and_equal_ones_share_it(pairs: list[tuple[str, str]]) -> None:
    numbers = group(pairs * 2)
    assert numbers[: len(pairs)] == numbers[len(pairs) :]
    assert group(pairs * 2) == numbers


def test_hostile_text_cannot_make_it_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    """All begin with the same hundred words, so that all share hashes, and no two are alike."""
    chance = random.Random(0)
    common = " ".join(f"w{n}" for n in range(100))
    hostile = [(f"{common} " + " ".join(f"x{chance.random()}" for _ in range(60)), "") for _ in range(300)]
    compared = 0

    def counted(one: frozenset[int], other: frozenset[int]) -> float:
        nonlocal compared
        compared += 1
        return similarity(one, other)

    monkeypatch.setattr(near_duplicates, "similarity", counted)
    assert len(set(group(hostile))) == 300
    assert 300 <= compared <= 8 * 300, "a few comparisons each, however many share something"


def test_only_the_beginning_of_an_endless_text_is_read() -> None:
    end = "".join(f" word{n}" for n in range(100_000))
    assert alike((end, "yes"), (end[:5000] + " another end", "yes"))
    assert alike(("ﷺ" * 100_000, "yes"), ("ﷺ" * 200_000, "yes")), "18 letters each, when unfolded"
