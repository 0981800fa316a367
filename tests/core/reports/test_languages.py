# SPDX-License-Identifier: Apache-2.0
"""A report in each language: nothing in it is left in English, and programs are told the same as ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from goodbot.api.predicted import CalibrationBin, Predicted, PredictedAnswer
from goodbot.api.report import FixedQuestion, ReportedAnswer
from goodbot.api.sentences import Reason, because
from goodbot.api.texts import LANGUAGES, catalogue, say
from goodbot.features.reports.flags import Flags
from goodbot.features.reports.groups import Groups
from goodbot.features.reports.kinds import named
from goodbot.features.reports.pairs import Pairs
from goodbot.features.reports.teachers import Teachers
from goodbot.features.reports.telling import number
from goodbot.features.reports.versions import VersionTable
from goodbot.features.reward_model.telling import PredictedPart

from tests.core.reports.made import answers, told
from tests.core.reports.test_planted import contrarian, german_half

OTHERS = [language for language in LANGUAGES if language != "en"]
QUESTIONS = [
    FixedQuestion(text=f"Tell of somebody of {value}.", about="age", value=value, pair=1)
    for value in ("25", "65")
]
PREDICTED = Predicted(
    answers=2300,
    good=1500,
    left_out=2,
    questions=90,
    by_person=True,
    auc=0.9,
    low=0.8,
    high=0.95,
    bins=[CalibrationBin(answers=460, expected=0.9, good=400)],
    said=[
        *(PredictedAnswer(id=f"a{n}", chance=0.95, good=False, odd=n < 20) for n in range(2000)),
        *(PredictedAnswer(id=f"new{n}", chance=0.5, good=None) for n in range(20)),
    ],
)
"""Something of each that it may say."""
SAID = {2: {"Tell of somebody of 25.": "Young.", "Tell of somebody of 65.": "Old."}}


def planted() -> list[ReportedAnswer]:
    """Something for each part to say, with what few answers have."""
    made = answers(7, 2000, change=german_half)
    made += [replace(one, id=f"c{one.id}") for one in answers(1, 300, change=contrarian)]
    made[3] = replace(made[3], answer="See www.example.com now")
    made[4] = replace(made[4], stars=4.5, seconds=2.5)
    made[5] = replace(made[5], filtered="email, word")
    made[6] = replace(made[6], ratings={}, judged=-1.0)
    return [*made, *(replace(made[0], id=f"new{n}", ratings={}, taught=None) for n in range(20))]


def whole(language: str) -> tuple[str, dict[str, Any]]:
    """All parts of one report."""
    changes: dict[str, Any] = {"language": language, "questions": QUESTIONS, "said": SAID}
    changes |= {"memory": {2: 2**31}, "predicted": PREDICTED}
    kinds = (Teachers, Groups, VersionTable, Pairs, Flags, PredictedPart)
    parts = {part: told(part(), planted(), **changes) for part in kinds}
    text = "\n".join(text for text, _ in parts.values())
    return text, {part.__name__: data for part, (_, data) in parts.items()}


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_of_it_is_left_in_english(language: str) -> None:
    text, data = whole(language)
    mine, english = catalogue(language), catalogue("en")
    left = [
        line
        for key, line in english.items()
        if isinstance(line, str) and "{" not in line and " " in line and mine[key] != line and line in text
    ]
    assert left == []
    for word in (" of ", " the ", "liked", "answers", "learnt", "English", "German", "undefined", "page_"):
        assert word not in text.replace("rollback answers", ""), word
    assert "{" not in text
    plain = whole("")[1]
    for part, found in data.items():
        found.pop("names", None)
        plain[part].pop("names", None)
        assert found == plain[part], part


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize(
    "why",
    [
        None,
        replace(PREDICTED, by_person=False, low=0.4),
        *(because(f"predict_{of}", count=7, least=20) for of in ("ratings", "rarer", "questions")),
        because("predict_server", server="openai"),
        because("predict_unusable"),
        because("text", text="This backend does not show the states of its model."),
        because("text", text="Of this model the hidden states cannot be found."),
    ],
)
def test_why_nothing_is_predicted_is_told_in_the_readers_language_and_to_programs_in_english(
    why: Predicted | Reason | None, language: str
) -> None:
    text, data = told(PredictedPart(), [], language=language, predicted=why)
    plain, same = told(PredictedPart(), [], predicted=why)
    assert data == same
    assert data.get("why", "") in plain
    for line in plain.replace(". ", ".\n").splitlines():
        assert line not in text, line


def test_why_somebody_else_s_program_failed_is_told_as_a_sentence() -> None:
    why = because("text", text="the trainer was killed by SIGKILL (out of memory?)")
    text, _ = told(PredictedPart(), [], predicted=why)
    assert text == "Nothing yet. The trainer was killed by SIGKILL (out of memory?)."
    assert told(PredictedPart(), [], predicted=because("of another goodbot"))[0] == "Nothing yet."


def test_what_was_predicted_and_what_came_of_it_is_a_sentence_for_each_fifth() -> None:
    bins = [
        CalibrationBin(answers=1460, expected=0.9, good=1270),
        CalibrationBin(answers=40, expected=0.2, good=10),
    ]
    text, _ = told(PredictedPart(), [], predicted=replace(PREDICTED, bins=bins))
    assert [line for line in text.splitlines() if "predicted chance" in line] == [
        "Of 1,460 answers with a predicted chance of 90% on average to be good, 87% were rated good"
        " (95% interval 85% to 89%).",
        "Of 40 answers with a predicted chance of 20% on average to be good, 25% were rated good"
        " (95% interval 14% to 40%).",
    ]
    german, _ = told(PredictedPart(), [], language="de", predicted=replace(PREDICTED, bins=bins))
    assert (
        "Von 40 Antworten, die im Mittel mit einer Chance von 20\u00a0% gut sein sollten, wurden 25\u00a0%"
        in german
    )


def test_in_english_nothing_needs_another_name() -> None:
    _, data = whole("en")
    assert data["Groups"]["names"] == {one: {} for one in data["Groups"]["groups"]}
    assert (data["VersionTable"]["names"], data["Pairs"]["names"]) == ({}, {})


def test_a_topic_stays_the_word_that_it_is() -> None:
    """Though it is also what we call something."""
    words = ["English", "longer", "none of these"]
    assert named(words, "de", "topic") == {"none of these": say("group_no_topic", "de")}
    assert named(words, "de", "length") == {
        "English": "Englisch",
        "longer": "länger",
        "none of these": say("group_no_topic", "de"),
    }


@pytest.mark.parametrize(
    ("language", "count", "said"),
    [("en", 1200, "1,200"), ("de", 1200, "1.200"), ("fr", 1200, "1\u00a0200"), ("fr", 1, 1), ("en", 0, 0)],
)
def test_a_count_is_written_as_the_language_does(language: str, count: int, said: object) -> None:
    assert number(count, language) == said


@pytest.mark.parametrize(
    ("language", "count", "said"),
    [
        ("en", 1, "Nothing, in 1 rated answer."),
        ("en", 2000, "Nothing, in 2,000 rated answers."),
        ("fr", 0, "Rien, dans 0 réponse notée."),
        ("de", 1, "Nichts, in 1 bewerteten Antwort."),
        ("ja", 1, "評価済みの回答 1 件に、気になる点はありません。"),
    ],
)
def test_one_is_not_many(language: str, count: int, said: str) -> None:
    assert say("report_nothing", language, count=number(count, language)) == said
