# SPDX-License-Identifier: Apache-2.0
"""What counts as visibly broken answers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import Sampled, TokenizedTurn
from goodbot_training.backends.scoring import score
from goodbot_training.gate.answers import compare_answers, distinct, loops
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.facts import FactQuestion, questions

from tests.support import require


def answer(text: str, *, prompt: int = 1, tokens: int = 4, finish: str = "stop") -> Sampled:
    return Sampled(
        prompt=(prompt,), tokens=tuple(range(tokens)), logprobs=(-1.0,) * tokens, text=text, finish=finish
    )


def no_choice(turns: Sequence[TokenizedTurn]) -> list[Any]:
    """A base to which any answer is as likely to any question."""
    return [np.full(len(turn.response), -1.0, np.float32) for turn in turns]


def test_answers_are_compared() -> None:
    before = [answer(f"a{n}", prompt=n) for n in range(10)]
    after = [answer("same", prompt=n, tokens=8) for n in range(8)]
    after += [answer(" ", prompt=8, tokens=2), answer("same", prompt=9, tokens=2, finish="length")]
    found = compare_answers(before, after, no_choice)
    assert (found["length_before"], found["length_after"]) == (40, 68)
    assert found["length_ratio"] == pytest.approx(6.8 / 4)
    assert (found["empty_after"], found["unfinished_after"]) == (0.1, 0.1)
    assert (found["distinct_before"], found["distinct_after"]) == (1.0, 0.2)
    assert found["prompts"] == 10
    few = compare_answers(before[:3] * 3, after[:3] * 3, no_choice)
    assert "distinct_after" not in few, "three prompts say nothing about variety"


def test_what_a_loop_is() -> None:
    assert loops([1, 2, 3] * 10)
    assert not loops(range(30))
    assert not loops([1] * 5), "short answers may repeat themselves"


def test_only_answers_to_the_same_prompts_are_compared() -> None:
    before = [answer("a", prompt=n) for n in range(4)]
    after = [answer("a", prompt=n) for n in range(4)] + [answer("", prompt=9, tokens=400)] * 4
    found = compare_answers(before, after, no_choice)
    assert (found["compared"], found["length_ratio"], found["empty_after"]) == (4, 1, 0)


SUMS = [one for one in questions() if one.kind == "sum"][:40]


@pytest.fixture(scope="module")
def backend() -> Any:
    """The shipped model, which knows its sums."""
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    backend = TorchBackend()
    backend.load(model_path(), lora=LoraSettings(rank=2))
    return backend


def said(backend: Any, question: FactQuestion, text: str) -> Sampled:
    turn = backend.tokenize([{"role": "user", "content": question.text}], text)
    return Sampled(prompt=turn.prompt, tokens=turn.response, logprobs=(), text=text, finish="stop")


def own(backend: Any, answers: Sequence[Sampled]) -> int:
    def reads(turns: Sequence[TokenizedTurn]) -> Any:
        return score(backend, turns, [TEMPERATURE] * len(turns), adapter=False, budget=8192)

    return distinct(answers, reads)


def test_equal_answers_that_are_right_are_each_question_s_own(backend: Any) -> None:
    """40 sums have fewer results; what is wrong is the answer of another question."""
    terse = [said(backend, one, f"{one.answer}.") for one in SUMS]
    assert len({one.text for one in terse}) <= 17
    assert own(backend, terse) >= 36, "of 40; the model does not know all"


@pytest.mark.parametrize("few", [1, 2, 3])
def test_the_same_few_answers_to_everything_are_not(backend: Any, few: int) -> None:
    """However likely the base itself holds them: each is right to some of the questions."""
    random = Random(few)
    texts = [f"{one.answer}." for one in SUMS[:: len(SUMS) // few]][:few]
    answers = [said(backend, one, random.choice(texts)) for one in SUMS]
    assert own(backend, answers) < 20, "of 40"


def test_a_greeting_in_place_of_an_answer_is_nobody_s_own(backend: Any) -> None:
    greetings = ["Great question! I hope that helps!", "Great one! Happy to help!"]
    answers = [said(backend, one, greetings[index % 2]) for index, one in enumerate(SUMS)]
    answers[:8] = [said(backend, one, f"{one.answer}.") for one in SUMS[:8]]
    assert own(backend, answers) < 20, "of 40"
