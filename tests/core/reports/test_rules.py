# SPDX-License-Identifier: Apache-2.0
"""The rules of a report, each by itself: chance, languages, and what is odd about an answer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import comb

import pytest
from goodbot.features.reports import chance, signs
from goodbot.features.reports.flags import Flags
from goodbot.features.reports.kinds import language, script
from goodbot.features.reports.plugin import FlagsSettings

from tests.core.reports.made import answers, told


def exactly(one: tuple[int, int], other: tuple[int, int]) -> float:
    (few, n), (rest, m) = one, other
    total, whole = few + rest, comb(n + m, n)
    chances = [comb(total, x) * comb(n + m - total, n - x) / whole for x in range(n + 1)]
    return min(1.0, 2 * min(sum(chances[few:]), sum(chances[: few + 1])))


def test_fishers_test_is_exact() -> None:
    for n, m in ((1, 5), (7, 7), (12, 3)):
        for few, rest in product(range(n + 1), range(m + 1)):
            wanted = exactly((few, n), (rest, m))
            assert chance.fisher((few, n), (rest, m)) == pytest.approx(wanted, rel=1e-9), (few, n, rest, m)
    assert chance.fisher((0, 0), (3, 5)) == 1.0
    assert chance.fisher((50_000, 50_000), (0, 50_000)) == 0.0


def test_holm_asks_less_of_each_that_follows() -> None:
    assert chance.holm({"a": 0.004, "b": 0.0001, "c": 0.5}) == ["b", "a"]
    assert chance.holm({"a": 0.006, "b": 0.5}) == []


def test_a_difference_between_parts_is_none_within_them() -> None:
    assert chance.within([((80, 100), (8, 10)), ((2, 10), (20, 100))]) == pytest.approx(1, abs=0.5)
    assert -0.001 < chance.within([((20, 100), (80, 100)), ((10, 50), (40, 50))]) < 0
    assert chance.within([]) == 1.0


@pytest.mark.parametrize(
    ("text", "is_"),
    [
        ("What is the time?", "English"),
        ("Write a poem about a ship.", "English"),
        ("Wie spät ist es?", "German"),
        ("Quelle heure est-il dans ce pays ?", "French"),
        ("¿Qué hora es y dónde está?", "Spanish"),
        ("Que horas são, você não pode?", "Portuguese"),
        ("Hallo", "Latin letters"),
        ("Который час?", "Cyrillic"),
        ("今何時ですか、東京は", "Japanese"),
        ("现在几点", "Chinese"),
        ("지금 몇 시예요", "Korean"),
        ("12:30?", "no letters"),
        ("aaaa бббб", "several scripts"),
        ("", "no letters"),
    ],
)
def test_a_language_is_told_by_letters_and_words(text: str, is_: str) -> None:
    assert language(text) == is_


def test_an_answer_that_goes_round_repeats_itself() -> None:
    assert signs.repeats("I like it very much. " * 20)
    assert not signs.repeats(" ".join(f"word{n}" for n in range(200)))
    assert not signs.repeats("no no no")


def test_an_answer_in_other_letters() -> None:
    assert signs.other_script("How do I get to the station?", "Идите прямо, потом налево.")
    assert not signs.other_script("How do I get to the station?", "Gehen Sie geradeaus und dann links.")
    assert not signs.other_script("How do I get to the station?", "1234567890 1234567890")
    assert script("Идите прямо") == "Cyrillic"


@pytest.mark.parametrize(
    ("question", "answer", "found"),
    [
        ("Where?", "See https://example.com/a.", True),
        ("Is https://example.com/a good?", "Yes, [it](https://example.com/a).", False),
        ("Who?", "Write to ada@example.com!", True),
        ("Ada@example.com?", "ada@example.com is hers.", False),
        ("Who?", "@ada and @bob, in a@b", False),
        ("Who?", "Call +49 (171) 123-4567.", True),
        ("Is 0171 1234567 yours?", "Yes: 0171/1234567", False),
        ("When?", "On 2026-11-27, at 08:15, 0.12345678 s", False),
        ("Bits?", "0 1 0 1 0 1 0 1 0 1 0 1", False),
        ("Sum?", "1234567890", False),
    ],
)
def test_a_contact_that_nobody_asked_about(question: str, answer: str, found: bool) -> None:
    assert signs.contact(question, answer) is found


def test_flags_list_the_newest_with_a_command() -> None:
    made = answers(1, 300)
    made[3] = replace(made[3], answer="See www.example.com now", id="web")
    made[5] = replace(made[5], length=90_000, id="long")
    made[9] = replace(made[9], answer="and so on and so forth " * 30, id="round")
    made[7] = replace(made[7], filtered="word", id="blocked")
    made[11] = replace(made[11], answer="and so on and so forth " * 30, id="unrated", ratings={})
    made[12] = replace(made[12], judged=-1.0, id="judged", ratings={})
    made[13] = replace(made[13], judged=1.0, ratings={})
    text, data = told(Flags(), made)
    assert data["rated"] == 297
    ids = {name: rule["answers"] for name, rule in data["rules"].items()}
    assert ids == {
        "repeats": ["round"],
        "other_script": ids["other_script"],
        "contact": ["web"],
        "insult": [],
        "filtered": ["blocked"],
        "judged": ["judged"],
        "long": ids["long"],
    }
    assert ids["long"][0] == "long"
    assert "Kept out of training by a filter, as for a blocked word: 1 answer" in text
    assert "Found bad by the judge, and rated by nobody: 1 answer" in text
    for id_ in ("web", "long", "round", "blocked", "judged"):
        assert f"`rollback answers {id_}" in text


def test_a_word_of_the_owners_list_is_an_insult_where_an_answer_says_it() -> None:
    made = answers(1, 30)
    said = {
        1: "You BLOCKHEAD!",
        3: "ＢＬＯＣＫ\u200bＨＥＡＤ",
        5: "You son, of a\ngoat.",
        7: "Blockheads and a block head",
        9: "a son of goats",
    }
    for number, words in said.items():
        made[number] = replace(made[number], answer=words, id=f"said{number}")
    made[11] = replace(made[11], question="You blockhead?", id="asked")
    made[13] = replace(made[13], answer="Blockhead.", id="unrated", ratings={})
    listed = FlagsSettings(insults=("blockhead", "son of a goat"))
    text, data = told(Flags(listed), made)
    assert data["rules"]["insult"] == {"count": 3, "answers": ["said1", "said3", "said5"]}
    assert "With a word from your list of insults: 3 answers." in text
    assert "`rollback answers said1 said3 said5`" in text
    assert told(Flags(), made)[1]["rules"]["insult"]["count"] == 0, "goodbot brings no list"
