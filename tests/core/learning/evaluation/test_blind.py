# SPDX-License-Identifier: Apache-2.0
"""What an owner is shown: never which is which."""

from __future__ import annotations

from dataclasses import replace

import pytest
from goodbot.learning.evaluation import blind
from goodbot.store.comparisons import Comparison, Pair, Tally

AFTER = Comparison(id=1, run=1, old=6, new=7, held=False, seed=12, state="asking", opened_at=0.0)
BEFORE = replace(AFTER, held=True)


def pair(number: int = 1, **fields: object) -> Pair:
    given = {
        "id": number,
        "comparison": AFTER,
        "turn": f"t{number}",
        "question": "How far\nis it?",
        "old": "Four kilometres.",
        "new": "4 km",
        "choice": "",
    }
    return Pair(**{**given, **fields})  # pyright: ignore[reportArgumentType]


def test_the_stored_seed_decides_which_answer_is_called_a() -> None:
    turns = [pair(number) for number in range(200)]
    first = [blind.new_first(one) for one in turns]
    assert first == [blind.new_first(one) for one in turns], "asked again, it is the same"
    assert 70 < sum(first) < 130, "it is a coin"
    other = replace(AFTER, seed=13)
    assert first != [blind.new_first(replace(one, comparison=other)) for one in turns]


def test_a_word_means_the_version_behind_the_letter() -> None:
    for number in range(20):
        one = pair(number)
        a, b = blind.answers(one)
        assert {a, b} == {"Four kilometres.", "4 km"}
        chosen = {"new": one.new, "old": one.old}
        assert chosen[blind.choice(one, "a")] == a
        assert chosen[blind.choice(one, "b")] == b
        assert blind.choice(one, "same") == "same"
        assert blind.choice(one, "skip") == "skip"


def test_the_question_shows_both_and_names_neither() -> None:
    pairs = [pair(1), pair(2)]
    text = blind.question(pairs, pairs[1])
    assert text.startswith("Which is better? (2 of 2)\n“How far is it?”\n\nA:\n")
    assert "Four kilometres." in text
    assert "4 km" in text
    assert "v6" not in text
    assert "v7" not in text
    assert [button.action for button in blind.buttons(pairs[1])] == [
        "run:compare 2 a",
        "run:compare 2 b",
        "run:compare 2 same",
        "run:compare 2 skip",
    ]


def test_long_answers_are_cut_so_that_a_message_holds_both() -> None:
    one = pair(old="x" * 5000, new=" ", question="w " * 1000)
    text = blind.question([one], one)
    assert len(text) < 2000, "Discord's limit"
    assert "(empty)" in text


@pytest.mark.parametrize(
    ("comparison", "tally", "state", "text"),
    [
        (AFTER, Tally(new=3, old=1, same=1), "passed", "3 for v7, 1 for v6, 1 the same. v7 stays."),
        (AFTER, Tally(old=4), "lost", "0 for v7, 4 for v6. v6 answers again."),
        (AFTER, Tally(open=5), "passed", ""),
        (AFTER, Tally(skip=2), "passed", ""),
        (BEFORE, Tally(), "passed", ""),
        (
            BEFORE,
            Tally(open=5),
            "passed",
            "Nobody has chosen, so the safety check alone decided: v7 may go live.",
        ),
        (
            BEFORE,
            Tally(open=1, skip=1),
            "passed",
            "Too few of your questions have answers that differ, so the safety check alone decided: "
            "v7 may go live.",
        ),
        (BEFORE, Tally(new=2, same=3), "passed", "2 for v7, 0 for v6, 3 the same. v7 may go live."),
        (BEFORE, Tally(old=3), "lost", "0 for v7, 3 for v6. v7 does not go live."),
    ],
)
def test_what_came_of_it_is_told_with_the_names(
    comparison: Comparison, tally: Tally, state: str, text: str
) -> None:
    assert blind.outcome(comparison, tally, state) == text


def test_the_base_model_has_a_name_too() -> None:
    assert blind.outcome(replace(AFTER, old=0), Tally(old=3), "lost").endswith(
        "The base model answers again."
    )
