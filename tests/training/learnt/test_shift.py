# SPDX-License-Identifier: Apache-2.0
"""What is named and what is not: made-up answers of which the truth is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from goodbot.api.learnt import LENGTH, Shift
from goodbot_training.learnt.features import Table, TextFeature, features, table
from goodbot_training.learnt.shift import shifts

ROUNDS = 200


class World(NamedTuple):
    """How answers come out: a mean length, and the chances of a list and of an exclamation mark."""

    length: float = 60.0
    lists: float = 0.4
    loud: float = 0.4


def say(world: World, random: np.random.Generator) -> str:
    text = "x" * max(1, round(random.gamma(4.0, world.length / 4)))
    text += "!" if random.random() < world.loud else "."
    return f"{text}\n- a\n- b" if random.random() < world.lists else text


def told(
    before: World, after: World, seed: int, *, liked: str = "", error: float = 0.1, questions: int = 8
) -> list[Shift]:
    """A round of 40 ratings by somebody who likes short answers, or lists, or nothing in particular."""
    random = np.random.default_rng(seed)
    rated = [say(before, random) for _ in range(40)]
    usual = float(np.median([len(text) for text in rated]))

    def good(text: str) -> bool:
        if liked == "short":
            return len(text) < usual
        return "\n- " in text if liked == "lists" else random.random() < 0.5

    rewards = [(1.0 if good(text) else -1.0) * (-1 if random.random() < error else 1) for text in rated]
    chosen = features(rated)
    old, new = (table(chosen, [say(world, random) for _ in range(64)]) for world in (before, after))
    asked = [n % questions for n in range(64)]
    return shifts(chosen, old, new, asked, table(chosen, rated), rewards, seed=seed)


def named(found: list[Shift]) -> dict[str, float]:
    return {one.feature: one.change for one in found if one.named}


def test_what_was_planted_is_named_with_its_direction() -> None:
    right = 0
    for seed in range(40):
        found = told(World(), World(length=36.0), seed, liked="short")
        right += named(found).keys() == {LENGTH} and named(found)[LENGTH] < 0
    assert right >= 33


@pytest.mark.parametrize("questions", [6, 8])
def test_an_interval_over_few_questions_holds_what_is_true(questions: int) -> None:
    held = 0
    for seed in range(60):
        found = told(World(), World(length=36.0), seed, liked="short", questions=questions)
        [length] = [one for one in found if one.feature == LENGTH]
        held += length.low <= (36 - 60) / (60 + 1 + 0.4 * 8) <= length.high
    assert held >= 55, "95 % of 60 are 57"


def test_of_five_questions_nothing_is_named() -> None:
    assert not named(told(World(), World(length=20.0), 0, liked="short", questions=5))


def test_another_habit_is_named_by_its_own_name() -> None:
    found = [named(told(World(), World(lists=0.95), seed, liked="lists")) for seed in range(20)]
    assert sum("lists" in one and one["lists"] > 0 for one in found) >= 19
    assert not [one for one in found if one.keys() - {"lists", "line_breaks", LENGTH}]


@pytest.mark.parametrize("questions", [8, 40])
def test_ratings_without_a_sense_name_nothing_though_answers_have_moved(questions: int) -> None:
    moved = World(length=45.0, lists=0.7, loud=0.1)
    loud = [told(World(), moved, seed, questions=questions) for seed in range(ROUNDS // 2)]
    assert sum(bool(named(found)) for found in loud) <= 3


def test_what_was_asked_for_and_has_not_come_is_not_named() -> None:
    quiet = [told(World(), World(), seed, liked="short") for seed in range(40)]
    assert sum(bool(named(found)) for found in quiet) <= 2, "half of 5 %"


def test_what_moves_against_the_ratings_is_not_named_as_learnt() -> None:
    for seed in range(10):
        assert LENGTH not in named(told(World(), World(length=120.0), seed, liked="short"))


@pytest.mark.parametrize(("after", "worth"), [(93.0, False), (80.0, True)])
def test_a_small_change_is_not_worth_a_word_however_sure_it_is(after: float, *, worth: bool) -> None:
    chosen = [TextFeature(name=LENGTH, of=lambda text: float(len(text)))]
    rewards = [1.0, -1.0] * 20
    rated: Table = np.array([[50.0 if reward > 0 else 150.0] for reward in rewards])
    before: Table = np.full((64, 1), 100.0)
    asked = [n % 8 for n in range(64)]
    [found] = shifts(chosen, before, before * after / 100, asked, rated, rewards, seed=0)
    assert found.named is worth


def test_ratings_of_one_sign_ask_for_nothing() -> None:
    chosen = [TextFeature(name=LENGTH, of=lambda text: float(len(text)))]
    long: Table = np.full((64, 1), 100.0)
    [found] = shifts(chosen, long, long / 2, [n % 8 for n in range(64)], long[:20], [1.0] * 20, seed=0)
    assert found.change == -0.5
    assert not found.named


def test_the_same_answers_say_the_same_each_time() -> None:
    assert told(World(), World(length=30.0), 3, liked="short") == told(
        World(), World(length=30.0), 3, liked="short"
    )
