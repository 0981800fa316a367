# SPDX-License-Identifier: Apache-2.0
"""The kept rounds of a real model say what the page and the defaults say."""

from __future__ import annotations

import pytest
from goodbot_training.job.settings import TrainingSettings

from tests.learning.real_rounds import ARMS, KEPT, PAGE, known, page, stored, taste, things

ADAPTED = 106_168_320
"""Weights of SmolLM2-135M in the adapted projections."""


def test_the_page_is_made_from_the_kept_rounds() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(stored(KEPT))


def test_each_round_is_kept_once() -> None:
    rounds = stored(KEPT)
    assert len({one.key for one in rounds}) == len(rounds)


def test_what_is_installed_is_what_went_live_whole() -> None:
    found, settings = [one for one in stored(KEPT) if one.arm == "bold-half"], TrainingSettings()
    assert found
    assert all(one.whole for one in found)
    arm = ARMS["bold-half"].settings
    assert settings.rate_for(ADAPTED) == pytest.approx(arm["learning_rate"], rel=0.05)
    assert settings.strength == arm["strength"]


def test_the_exam_has_questions_enough_that_no_round_asks() -> None:
    assert len(things()) == len({*things()}) >= 100
    assert len(known()) == len({question for question, _ in known()}) >= 90


def test_who_likes_short_answers_likes_half_of_them() -> None:
    texts = ["a", "bb", "ccc", "dddd"]
    assert [taste("short", texts)(text) for text in texts] == [True, True, False, False]
    assert [taste("long", texts)(text) for text in texts] == [False, False, True, True]
    assert not taste("opens", texts)("The sea.")
