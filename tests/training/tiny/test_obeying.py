# SPDX-License-Identifier: Apache-2.0
"""The shipped model follows what people ask of its answers, and nothing else that they say.

In a note, as the daemon writes it, and behind the question, as a training reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
from goodbot.api.actions import HINTS
from goodbot.api.hindsight import CHIPS, hindsight
from goodbot.conversation.note_rules import RULES, system_line
from goodbot_training.round.hindsight import with_words
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.chatml import ChatMessage
from goodbot_training.tiny.facts import FactQuestion, questions
from goodbot_training.tiny.judge import is_correct, style_of
from goodbot_training.tiny.styles import STYLES, render
from goodbot_training.tiny.wishes import HELD_OUT

from tests.support import require

LONGER = ("friendly", "pirate")
ELSEWHERE = (
    "Thanks. By the way, the weather is nice today.",
    "I asked this yesterday.",
    "I will eat soup at noon.",
    "My grandmother sings on Sundays.",
    "My friend lives in Rome.",
    "The film about a pirate was too long for me.",
    "qwxz blorp",
    RULES["wrong"].text,
    RULES["tone"].text,
    RULES["better"].text,
    CHIPS["wrong"],
    CHIPS["tone"],
)
"""Lines that ask for no style that there is."""

Place = Callable[..., list[ChatMessage]]


def _noted(question: str, *lines: str) -> list[ChatMessage]:
    said = system_line(lines, 1.0)
    return [{"role": "system", "content": said}, {"role": "user", "content": question}]


def _behind(question: str, *lines: str) -> list[ChatMessage]:
    worded = with_words([{"role": "user", "content": question}], hindsight(reasons=lines))
    return [{"role": "user", "content": str(message["content"])} for message in worded]


RIGHT = {_noted: 0.95, _behind: 0.85}
"""So many answers are right: what stands behind a question is scored by a training, and never answered."""
PLACES = pytest.mark.parametrize("place", [_noted, _behind], ids=["noted", "behind"])


class Answered(NamedTuple):
    """Shares of the answers."""

    styles: dict[str | None, float]
    right: float

    def among(self, *styles: str) -> float:
        return sum(self.styles.get(style, 0.0) for style in styles)


Ask = Callable[[Sequence[Callable[[FactQuestion], Sequence[ChatMessage]]], int], Answered]


@pytest.fixture(scope="module")
def ask() -> Ask:
    """Has the model answer so many questions put in each of the ways."""
    torch = require("torch")
    require("transformers")
    from goodbot_training.tiny.sample import sample
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(model_path(), dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(model_path() / "tokenizer.json"))
    say = partial(sample, model, tokenizer, temperature=TEMPERATURE, seed=0)

    def ask(ways: Sequence[Callable[[FactQuestion], Sequence[ChatMessage]]], count: int) -> Answered:
        asked = Random(1).choices(questions(), k=count * len(ways))
        answers = say([ways[index % len(ways)](question) for index, question in enumerate(asked)])
        found = Counter(map(style_of, answers))
        shares = {style: number / len(asked) for style, number in found.items()}
        return Answered(shares, sum(map(is_correct, asked, answers)) / len(asked))

    return ask


def _each(place: Place, lines: Sequence[str]) -> list[Callable[[FactQuestion], Sequence[ChatMessage]]]:
    """A way to ask with each of the lines."""
    return [lambda question, said=said: place(question.text, said) for said in lines]


@PLACES
@pytest.mark.parametrize(("chip", "styles"), [("long", ("terse",)), ("short", LONGER)])
def test_a_button_is_followed(ask: Ask, place: Place, chip: str, styles: Sequence[str]) -> None:
    line = RULES[chip].text if place is _noted else CHIPS[chip]
    found = ask(_each(place, [line]), 300)
    assert found.among(*styles) >= 0.8
    assert found.right >= RIGHT[place]


@PLACES
@pytest.mark.parametrize("style", STYLES)
def test_wordings_that_it_never_saw_are_followed(ask: Ask, place: Place, style: str) -> None:
    assert len(HELD_OUT[style]) == 10
    found = ask(_each(place, HELD_OUT[style]), 30)
    assert found.among(style) >= 0.85
    assert found.right >= RIGHT[place]


@PLACES
def test_what_asks_for_no_style_changes_nothing(ask: Ask, place: Place) -> None:
    found = ask(_each(place, ELSEWHERE), 60)
    for style in STYLES:
        assert found.among(style) == pytest.approx(1 / 3, abs=0.12)
    assert found.right >= RIGHT[place]


@pytest.mark.parametrize("noted", [False, True])
def test_a_second_try_is_short(ask: Ask, noted: bool) -> None:
    """What is pressed under a long answer, once with the note that it makes."""
    chance = Random(0)

    def put(question: FactQuestion) -> list[ChatMessage]:
        asked = _noted(question.text, RULES["long"].text) if noted else _noted(question.text)[1:]
        before = render(question, chance.choice(LONGER), chance)
        told = HINTS["long"].told
        return [*asked, {"role": "assistant", "content": before}, {"role": "user", "content": told}]

    found = ask([put], 100)
    assert found.among("terse") >= 0.85
    assert found.right >= 0.75
