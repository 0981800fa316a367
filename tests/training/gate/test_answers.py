"""What counts as visibly broken answers."""

from __future__ import annotations

import pytest
from goodbot.backend import Sampled
from goodbot_training.gate.answers import compare_answers, loops


def answer(text: str, *, prompt: int = 1, tokens: int = 4, finish: str = "stop") -> Sampled:
    return Sampled(
        prompt=(prompt,),
        tokens=tuple(range(tokens)),
        logprobs=(-1.0,) * tokens,
        text=text,
        finish=finish,
    )


def test_answers_are_compared() -> None:
    before = [answer(f"a{n}", prompt=n) for n in range(10)]
    after = [answer("same", prompt=n, tokens=8) for n in range(8)]
    after += [answer(" ", prompt=8, tokens=2), answer("same", prompt=9, tokens=2, finish="length")]
    found = compare_answers(before, after)
    assert (found["length_before"], found["length_after"]) == (40, 68)
    assert found["length_ratio"] == pytest.approx(6.8 / 4)
    assert (found["empty_after"], found["unfinished_after"]) == (0.1, 0.1)
    assert (found["distinct_before"], found["distinct_after"]) == (1.0, 0.2)
    assert found["prompts"] == 10
    few = compare_answers(before[:3] * 3, after[:3] * 3)
    assert "distinct_after" not in few, "three prompts say nothing about variety"


def test_what_a_loop_is() -> None:
    assert loops([1, 2, 3] * 10)
    assert not loops(range(30))
    assert not loops([1] * 5), "short answers may repeat themselves"


def test_only_answers_to_the_same_prompts_are_compared() -> None:
    before = [answer("a", prompt=n) for n in range(4)]
    after = [answer("a", prompt=n) for n in range(4)] + [answer("", prompt=9, tokens=400)] * 4
    found = compare_answers(before, after)
    assert (found["compared"], found["length_ratio"], found["empty_after"]) == (4, 1, 0)
