# SPDX-License-Identifier: Apache-2.0
"""Groups by length and by hour, and what a version is like, from answers that were planted."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from goodbot.api.report import ReportedAnswer
from goodbot.features.reports.groups import Groups
from goodbot.features.reports.versions import VersionTable

from tests.core.reports.made import answers, told

MIDNIGHT = 1_699_920_000
"""In London."""
LENGTHS = {
    1: "up to 100 characters",
    100: "up to 100 characters",
    101: "101 to 400",
    400: "101 to 400",
    401: "401 to 1,500",
    1500: "401 to 1,500",
    1501: "longer",
    90_000: "longer",
}
ENGLISH = "This is how you do it with the lamp."
GERMAN = "Das ist der Weg, wie du es mit der Lampe machst."


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The owner's clock is nine hours before London's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


def rated(answer: ReportedAnswer, *, bad: bool) -> ReportedAnswer:
    return replace(answer, ratings=dict.fromkeys(answer.ratings, -1.0)) if bad else answer


def of_some_length(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """Nobody likes the longest."""
    length = random_.choice([*LENGTHS])
    return rated(replace(answer, length=length), bad=length > 1500)


def at_some_hour(answer: ReportedAnswer, random_: random.Random) -> ReportedAnswer:
    """Nobody likes what is said in Tokyo before six in the morning."""
    hour, day = random_.randrange(24), random_.randrange(30)
    answer = replace(answer, at=MIDNIGHT + 86_400.0 * day + 3600 * hour)
    return rated(answer, bad=15 <= hour < 21)


def test_answers_are_told_apart_by_their_length() -> None:
    for seed in range(5):
        made = answers(seed, change=of_some_length)
        text, data = told(Groups(), made)
        rows = {row["group"]: row["rated"] for row in data["groups"]["length"]}
        assert rows == Counter(LENGTHS[one.length] for one in made)
        first = data["apart"][0]
        assert (first["by"], first["group"], first["good"]) == ("length", "longer", 0)
        assert first["high"] < 0
        assert "Length of the answer, longer: liked less than others, by more than chance: 0%" in text


def test_answers_are_told_apart_by_the_hour_of_the_owners_clock(tokyo: None) -> None:
    for seed in range(5):
        made = answers(seed, change=at_some_hour)
        text, data = told(Groups(), made)
        begins = [(int(one.at - MIDNIGHT) // 3600 + 9) % 24 // 6 * 6 for one in made]
        rows = {row["group"]: row["rated"] for row in data["groups"]["hour"]}
        assert rows == Counter(f"{begin:02}:00 to {begin + 6:02}:00" for begin in begins)
        first = data["apart"][0]
        assert (first["by"], first["group"], first["good"]) == ("hour", "00:00 to 06:00", 0)
        assert first["high"] < 0
        assert "Time of the day, 00:00 to 06:00: liked less than others, by more than chance: 0%" in text


def test_a_version_has_its_mean_of_stars_its_length_and_its_languages() -> None:
    one = replace(answers(1, 1)[0], ratings={"slack:U1": 1.0})
    made = [
        replace(one, id=f"{version}-{number}", version=version, length=length, answer=answer, stars=stars)
        for version, planted in {
            0: [(10, ENGLISH, None), (20, ENGLISH, None), (400, ENGLISH, None)],
            1: [(30, ENGLISH, 5.0), (50, GERMAN, 4.0), (70, "42", None)],
            2: [(90, ENGLISH, 1.0), (80, ENGLISH, 2.0), (700, ENGLISH, 2.5), (800, GERMAN, 3.0)],
            None: [(9999, GERMAN, 5.0)],  # another model's
        }.items()
        for number, (length, answer, stars) in enumerate(planted)
    ]
    text, data = told(VersionTable(), made)
    found = [
        (
            *(row["version"], row["answers"], row["stars"], row["starred"]),
            *(row["median_length"], row["languages"]),
        )
        for row in data["versions"]
    ]
    assert found == [
        (0, 3, None, 0, 20, {"English": 1.0}),
        (1, 3, 4.5, 2, 50, {"English": 0.5, "German": 0.5}),
        (2, 4, 2.125, 4, 395, {"English": 0.75, "German": 0.25}),
    ]
    base, first, second = text.splitlines()[:3]
    assert "stars" not in base
    assert "3 answers, half of them over 20 characters" in base
    assert "4.5 stars of 2" in first
    assert "3 answers, half of them over 50 characters" in first
    assert "2.1 stars of 4" in second
    assert "4 answers, half of them over 395 characters" in second
    for share in ("English 75%", "German 25%"):
        assert share in second
