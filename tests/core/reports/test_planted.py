# SPDX-License-Identifier: Apache-2.0
"""What is planted is found, and where there is nothing, nothing is named."""

from __future__ import annotations

import random
from dataclasses import replace

from goodbot.api.report import ReportedAnswer
from goodbot.features.reports.flags import Flags
from goodbot.features.reports.groups import Groups
from goodbot.features.reports.teachers import Teachers
from goodbot.features.reports.versions import VersionTable

from tests.core.reports.made import PEOPLE, QUESTIONS, answers, named, shuffled, told


def german_half(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """Of the likes of answers to German questions every other one is none."""
    if answer.question == QUESTIONS["German"] and answer.good and random_.random() < 0.5:
        return replace(answer, ratings=dict.fromkeys(answer.ratings, -1.0))
    return answer


def mostly_one(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """One person has taught 80 %."""
    if not answer.taught:
        return answer
    return replace(answer, taught={PEOPLE[0] if random_.random() < 0.8 else PEOPLE[1]: 1.0})


def second_better(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    return replace(answer, ratings=dict.fromkeys(answer.ratings, 1.0)) if answer.version == 2 else answer


def contrarian(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """Three rate each answer alike, most of the time; the last of the five says the opposite."""
    sign = next(iter(answer.thumbs.values()))
    who = random_.sample(PEOPLE[:4], 2)
    same = {one: sign if random_.random() < 0.9 else -sign for one in who}
    return replace(answer, ratings={**same, PEOPLE[4]: -sign})


def test_a_language_with_half_the_likes_is_named_first() -> None:
    for seed in range(5):
        text, data = told(Groups(), answers(seed, change=german_half))
        [first, *more] = data["apart"]
        assert (first["by"], first["group"]) == ("language", "German")
        assert first["difference"] < -0.2
        assert first["high"] < 0
        assert first["within_people"]
        assert more == []
        assert "Language of the question, German: liked less than others, by more than chance: 3" in text


def test_a_difference_between_people_is_told_as_one() -> None:
    """All who write in German like little, and of each person all answers alike."""

    def by_people(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
        german = answer.question == QUESTIONS["German"]
        who = PEOPLE[0] if german or random_.random() < 0.05 else PEOPLE[1]
        likes = 0.3 if who == PEOPLE[0] else 0.7
        return replace(answer, ratings={who: 1.0 if random_.random() < likes else -1.0}, taught=None)

    text, data = told(Groups(), answers(3, change=by_people))
    [one] = [one for one in data["apart"] if one["group"] == "German"]
    assert not one["within_people"]
    assert "It may be who rated, not the answers" in text


def about_code(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """Every fourth question is about code, and nobody likes what is said of it."""
    if random_.random() < 0.75:
        words = random_.choice(("the sea and ships", "my garden", "a good dinner"))
        return replace(answer, question=f"Tell of {words}", readable=True)
    said = {"question": "Explain this code", "answer": "This code adds two numbers.", "readable": True}
    return replace(answer, **said, ratings=dict.fromkeys(answer.ratings, -1.0))


def test_a_topic_that_nobody_likes_is_named_and_no_word_of_what_may_not_be_read() -> None:
    text, data = told(Groups(), answers(2, change=about_code))
    topics = {row["group"]: row for row in data["groups"]["topic"]}
    assert set(topics) == {"code", "none of these"}
    assert (topics["code"]["good"], topics["code"]["taught"].keys() <= {*PEOPLE}) == (0, True)
    assert sum(row["rated"] for row in topics.values()) == 1000, "each answer is of one"
    assert "Topic of the question, code: liked less than others, by more than chance: 0%" in text
    private = [replace(one, readable=False) for one in answers(2, change=about_code)]
    text, data = told(Groups(), private)
    assert (data["groups"]["topic"], "code" in text) == ([], False)


def test_who_has_taught_most_of_it_is_named() -> None:
    for seed in range(5):
        text, data = told(Teachers(), answers(seed, change=mostly_one))
        assert data["most"]["person"] == PEOPLE[0]
        assert data["most"]["low"] < 0.8 < data["most"]["high"]
        assert f"{PEOPLE[0]} has taught more than half: " in text
    alone = answers(1, change=lambda answer, _: replace(answer, taught={PEOPLE[0]: 1.0}))
    assert told(Teachers(), alone)[1]["most"] is None, "who is alone is no surprise"


def test_a_better_version_is_named() -> None:
    text, data = told(VersionTable(), answers(1, change=second_better))
    assert {(one["before"], one["version"]) for one in data["apart"]} == {(1, 2), (0, 2)}
    assert "v2 is liked more than base, by more than chance." in text
    assert data["peak"]["version"] == 2
    assert data["peak"]["answers"] == 80


def test_who_says_the_opposite_of_others_is_named_alone() -> None:
    for seed in range(5):
        text, data = told(Flags(), answers(seed, 300, change=contrarian))
        assert [one["person"] for one in data["people"]] == [PEOPLE[4]]
        assert f"`rollback answers {data['people'][0]['answers'][0]} " in text
        assert f"`rollback person {PEOPLE[4]}` leaves out" in text


def test_of_twenty_that_are_shuffled_nothing_is_named_in_nineteen() -> None:
    """The planted skews, dealt anew: what is left is chance."""
    planted = answers(7, 2000, change=german_half)
    quiet = [not named(shuffled(planted, seed)) for seed in range(20)]
    assert sum(quiet) >= 19
    assert named(planted)


def test_of_few_ratings_nothing_is_compared() -> None:
    text, data = told(Groups(), answers(1, 30))
    assert data["compared"] == 0
    assert "nothing is compared" in text
