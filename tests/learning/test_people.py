# SPDX-License-Identifier: Apache-2.0
"""The command that puts what a round has learnt to real people's ratings, on data of each schema."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.styles import STYLES

from tests.learning import people
from tests.support import require

ROWS = 20


def test_the_auc_is_that_of_hand() -> None:
    scores, good = np.array([3.0, 1.0, 2.0, 1.0]), np.array([True, True, False, False])
    assert people.auc(scores, good) == (1 + 1 + 0 + 0.5) / 4
    assert people.auc(-scores, good) == 1 - people.auc(scores, good)
    assert math.isnan(people.auc(scores, np.array([True] * 4)))


def test_among_answers_of_like_length_length_tells_nothing() -> None:
    random = Random(0)
    lengths = np.array([float(n // 20) for n in range(400)])
    good = np.array([random.random() < n / 20 for n in lengths])
    noise = np.array([random.random() for _ in lengths])
    assert people.auc(lengths, good) > 0.75
    assert abs(people.auc_within(lengths, good, lengths) - 0.5) < 0.15
    assert people.auc_within(10 * good + noise, good, lengths) == 1


def answers() -> list[tuple[str, str, bool]]:
    """A question, an answer, and whether its person liked it: they want it short."""
    questions = split(0)[0][:ROWS]
    styled = [STYLES[number % 2] for number in range(ROWS)]
    return [
        (
            q.text,
            f"{q.answer}." if style == STYLES[0] else f"Great one! It is {q.answer}. Happy to help!",
            style == STYLES[0],
        )
        for q, style in zip(questions, styled, strict=True)
    ]


def of_prism(path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "utterance_id": f"ut{number}",
            "interaction_id": f"int{number // 4}",
            "conversation_id": f"c{number // 4}",
            "user_id": f"user{number // 8}",
            "turn": 0,
            "within_turn_id": number % 4,
            "user_prompt": question,
            "model_response": answer,
            "model_name": "a-model",
            "model_provider": "a-maker",
            "score": 80 if good else 21,
            "if_chosen": good,
        }
        for number, (question, answer, good) in enumerate(answers())
    ]
    odd = [{**rows[0], "score": 50}, {**rows[0], "model_response": None}, {**rows[0], "score": None}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, *odd]), encoding="utf-8")


def of_wildfeedback(path: Path) -> None:
    rows = [
        {
            "conversations": [{"from": "human", "value": question}],
            "chosen": {"from": "gpt", "value": answer if good else "Yes."},
            "rejected": {"from": "gpt", "value": "I am a language model." if good else answer},
        }
        for question, answer, good in answers()
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")


def of_chitchat(path: Path) -> None:
    said = [
        {
            "messages": [[{"text": question, "sender": "a"}], [{"text": answer, "sender": "b"}]],
            "ratings": {"witty": 8 if good else 2, "upbeat": 5, "interesting": 5},
        }
        for question, answer, good in answers()
    ]
    alone = {"messages": [[{"text": "hello?", "sender": "a"}]], "ratings": {"witty": 1}}
    unrated = {"messages": said[0]["messages"]}
    chats = {str(number): chat for number, chat in enumerate([*said, alone, unrated])}
    path.write_text(json.dumps(chats), encoding="utf-8")


WRITERS = {"prism": of_prism, "wildfeedback": of_wildfeedback, "chitchat": of_chitchat}


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_no_rating_is_left_out(form: str, tmp_path: Path) -> None:
    WRITERS[form](tmp_path / "data")
    found = list(people.FORMS[form](tmp_path / "data"))
    assert len(found) == (2 * ROWS if form == "wildfeedback" else ROWS)
    assert all(one.answer and one.messages[-1]["role"] == "user" for one in found)
    assert {scale for one in found for scale in one.good} == {
        {"prism": "score", "wildfeedback": "preferred", "chitchat": "witty"}[form]
    }


@pytest.mark.parametrize("form", WRITERS)
def test_twenty_rows_of_each_schema_run_through_the_command(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("torch", "peft"):
        require(module)
    WRITERS[form](tmp_path / "data")
    people.main([form, str(tmp_path / "data"), "--ratings", "12", "--seeds", "1"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(lines) == len(people.ROWS)
    assert all("nan" not in line.split("|")[3] for line in lines)


def test_too_few_ratings_are_no_figure(tmp_path: Path) -> None:
    for module in ("torch", "peft"):
        require(module)
    of_prism(tmp_path / "data")
    with pytest.raises(SystemExit, match="too few"):
        people.main(["prism", str(tmp_path / "data"), "--ratings", "20", "--seeds", "1"])
