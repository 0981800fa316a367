"""The publish gate: what passes, what is refused, and the sentence that it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from goodbot.backend import Sampled
from goodbot_training.evaluation import compare_answers, decide, loops, margin
from goodbot_training.types import TrainingSettings

from tests.training.factories import make_rollout

SETTINGS = TrainingSettings()
SOUND: dict[str, float] = {
    "finite": 1.0,
    "held_out": 8.0,
    "margin_change": 0.4,
    "margin_allowed": 0.1,
    "anchors": 64.0,
    "anchor_loss_change": 0.3,
    "drift": 0.3,
    "length_ratio": 0.3,
    "empty_before": 0.0,
    "empty_after": 0.0,
    "looping_before": 0.0,
    "looping_after": 0.02,
    "unfinished_before": 0.1,
    "unfinished_after": 0.1,
    "distinct_before": 0.95,
    "distinct_after": 0.8,
}


def test_a_style_that_was_learnt_passes_with_its_figures() -> None:
    verdict = decide(SOUND, SETTINGS)
    assert verdict.passed
    assert "better" in verdict.reason
    assert "+0.40" in verdict.reason
    assert "64" in verdict.reason
    about = decide(SOUND | {"margin_change": -0.08}, SETTINGS)
    assert about.passed
    assert "about as well" in about.reason


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"finite": 0.0}, "not finite"),
        ({"changed": 0.0}, "nothing to learn"),
        ({"margin_change": -0.2}, "worse than the current policy on 8"),
        ({"anchor_loss_change": 2.0}, "lost language"),
        ({"drift": 3.0}, "drifted"),
        ({"empty_after": 0.2}, "20% of its answers are empty"),
        ({"looping_after": 0.5}, "repeating"),
        ({"unfinished_after": 0.9}, "without an end"),
        ({"length_ratio": 3.0}, "3.00 times as long"),
        ({"length_ratio": 0.1}, "0.10 times as long"),
        ({"distinct_after": 0.1}, "same answer"),
    ],
)
def test_what_is_broken_is_refused_with_its_figures(figures: dict[str, float], words: str) -> None:
    verdict = decide(SOUND | figures, SETTINGS)
    assert not verdict.passed
    assert words in verdict.reason
    assert verdict.reason.endswith("."), "one sentence"
    assert verdict.reason.endswith(".")


def test_what_could_not_be_measured_vetoes_nothing() -> None:
    assert decide({"finite": 1.0, "held_out": 0.0}, SETTINGS).passed


def rows(*means: float) -> list[Any]:
    return [np.full(3, mean, np.float32) for mean in means]


def test_the_margin_by_hand() -> None:
    held_out = [make_rollout(n, reward=r) for n, r in enumerate((1.0, 1.0, -1.0, -1.0))]
    found = margin(held_out, rows(-1, -1, -1, -1), rows(-0.5, -0.7, -2, -3), tolerance=0.05)
    assert found["margin_change"] == pytest.approx(0.4 - -1.5)
    # variances .02 and .5, two each
    assert found["margin_allowed"] == pytest.approx(0.05 + (0.01 + 0.25) ** 0.5, rel=1e-4)
    assert found["held_out"] == 4


def test_shuffled_labels_that_taught_the_opposite_are_refused() -> None:
    held_out = [make_rollout(n, reward=(-1.0) ** n) for n in range(8)]
    before = rows(*[-1.0] * 8)
    after = rows(*[-1.6 - 0.01 * n if n % 2 == 0 else -0.6 - 0.01 * n for n in range(8)])
    verdict = decide(SOUND | margin(held_out, before, after, tolerance=0.05), SETTINGS)
    assert not verdict.passed
    assert "worse" in verdict.reason


def test_a_margin_of_one_side_or_none() -> None:
    bad = [make_rollout(0, reward=-1.0)]
    assert margin(bad, rows(-1), rows(-2), tolerance=0)["margin_change"] == pytest.approx(1.0)
    assert margin([], [], [], tolerance=0) == {"held_out": 0.0}
    tie = [make_rollout(0, reward=0.0)]
    assert margin(tie, rows(-1), rows(-2), tolerance=0) == {"held_out": 0.0}


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
    assert found["length_ratio"] == pytest.approx(6.8 / 4)
    assert (found["empty_after"], found["unfinished_after"]) == (0.1, 0.1)
    assert (found["distinct_before"], found["distinct_after"]) == (1.0, 0.2)
    few = compare_answers(before[:3] * 3, after[:3] * 3)
    assert "distinct_after" not in few, "three prompts say nothing about variety"


def test_what_a_loop_is() -> None:
    assert loops([1, 2, 3] * 10)
    assert not loops(range(30))
    assert not loops([1] * 5), "short answers may repeat themselves"
