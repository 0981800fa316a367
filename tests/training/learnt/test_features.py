# SPDX-License-Identifier: Apache-2.0
"""What of an answer is counted, and that a long one takes no longer than its length."""

from __future__ import annotations

import pytest
from goodbot.api.learnt import LENGTH, Learnt, card, opener
from goodbot_training.learnt.features import TextFeature, features, table
from goodbot_training.learnt.languages import language

LIST = "Three things:\n- one\n- two\n"


def numbers(text: str) -> dict[str, float]:
    chosen = features([])
    return {one.name: value for one, value in zip(chosen, table(chosen, [text])[0], strict=True)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("line_breaks", "One.\nTwo."),
        ("lists", LIST),
        ("lists", "1. one\n2) two"),
        ("code", "See:\n```py\nx = 1\n```"),
        ("markup", "That is **bold**."),
        ("markup", "## A heading\nText."),
        ("emoji", "Nice 🙂"),
        ("emoji", "Nice ⭐"),
        ("exclamations", "Nice! Really."),
        ("exclamations", "好！"),
        ("questions", "It is 4. Anything else? "),
        ("questions", "还有吗？"),
        ("greetings", "Hello, it is 4."),
        ("greetings", "Привет! 4."),
        ("refusals", "I'm sorry, but no."),
        ("refusals", "Ich kann das nicht sagen."),
        ("first_person", "It is, I think, 4."),
        ("first_person", "That is what I’d say."),
    ],
)
def test_what_is_there_is_seen(name: str, text: str) -> None:
    assert numbers(text)[name] == 1


def test_what_is_not_there_is_not_seen() -> None:
    plain = "A plain line - with a dash, 3.5 of them, # no heading, and a question? No."
    found = numbers(plain)
    assert found.pop("length") == len(plain)
    assert set(found.values()) == {0.0}
    assert set(numbers("").values()) == {0.0}


GERMAN = "Das ist die Hauptstadt, und sie ist nicht klein."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Great question! The capital of France is Paris.", "en"),
        (GERMAN, "de"),
        ("C'est la capitale, et elle est dans le nord des Alpes.", "fr"),
        ("Es la capital del país, y está en el norte.", "es"),
        ("È la capitale della Francia, che non è lontana.", "it"),
        ("É a capital, e não é mais uma cidade com você.", "pt"),
        ("Это столица Франции.", "cyrillic"),
        ("法国的首都是巴黎。", "han"),
        ("フランスの首都はパリです。", "kana"),
        ("프랑스의 수도는 파리입니다.", "hangul"),
        ("Paris.", ""),
        ("Arr, matey!", ""),
        ("As far as I know, Paris.", ""),
        ("She is as tall as her brother and twice as fast as her dad.", "en"),
        ("30 miles per hour, 48 km per hour", ""),
        ("Los Angeles and Las Vegas.", ""),
        ("The Casa Con Su and Por Que Una.", "en"),
        ("The the the.", ""),
        (f"{GERMAN}\n```\n# the list is not of that, and it was for you\n```\nFertig.", "de"),
        ("日语里的“的”写作“の”，这是一个助词。", "han"),
        ("π", ""),
        ("東京。", ""),
        ("1 + 1 = 2 🙂", ""),
        ("", ""),
    ],
)
def test_a_language_is_told_by_letters_and_small_words_or_not_at_all(text: str, found: str) -> None:
    assert language(text) == found


def test_another_language_is_one_in_which_few_of_the_rated_answers_are() -> None:
    english = ["The sea is blue, and it is wide.", "You are right, and that is it.", "It is not the sea."]
    assert others([*english, GERMAN, "Paris."], *english, GERMAN, "Paris.", "Это столица.") == [
        0,
        0,
        0,
        1,
        0,
        1,
    ]


def others(rated: list[str], *texts: str) -> list[float]:
    """Which of the texts are in another language than the rated answers."""
    [other] = [one for one in features(rated) if one.name == "other_language"]
    return table([other], texts)[:, 0].tolist()


def test_there_is_no_other_language_where_that_of_most_answers_is_not_known() -> None:
    dutch = ["Dat is de stad.", "Wie die man was is niet bekend.", "Een huis aan zee."]
    assert language(dutch[1]) == "en", "a guess that is wrong"
    assert others(dutch, "Das ist die Stadt und nicht das Land.", *dutch) == [0, 0, 0, 0]


def test_a_japanese_answer_without_kana_is_in_no_other_language() -> None:
    japanese = ["フランスの首都はパリです。"]
    assert others(japanese, "東京都千代田区。", "The sea is blue, and it is wide.") == [0, 1]
    assert others(["法国的首都是巴黎。"], "フランスの首都はパリです。") == [1]


def test_first_words_are_looked_at_where_many_answers_have_them() -> None:
    rated = ["Sure! Yes.", "Sure, no.", "“Sure” it is.", "Sure.", "Sure?", "Anna, hello.", "Anna, bye."]
    words = {one.word for one in features(rated) if one.word}
    assert words == {"Sure"}, "too few begin with another one"
    [begins] = [one for one in features(rated) if one.word]
    assert table([begins], ["Sure thing.", "Surely.", "So sure.", ""])[:, 0].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(("text", "word"), [("**Hi!** you", "Hi"), ("", ""), ("…", ""), ("  Arr, me", "Arr")])
def test_a_first_word_is_without_its_marks(text: str, word: str) -> None:
    assert opener(text) == word


def test_every_feature_has_words() -> None:
    def said(one: TextFeature, change: float) -> str:
        of = 40.0 if one.name == LENGTH else 0.5
        figures = dict.fromkeys(("before", "after", "low", "high"), of)
        shift = {"feature": one.name, "word": one.word, "change": change, "named": True, **figures}
        return card(
            Learnt.parse({"answers": 1, "questions": 1, "trained": False, "shifts": [shift], "examples": []})
        )

    for one in features(["Sure."] * 9):
        more, less = said(one, 0.5), said(one, -0.5)
        assert more, one.name
        assert less, one.name
        assert more != less, one.name
