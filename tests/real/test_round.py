# SPDX-License-Identifier: Apache-2.0
"""A round on the real model: forty ratings through the API, the gate, what answers then, and the way back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from goodbot.api import fingerprint as fingerprint_check

from tests.real import yardstick
from tests.real.conftest import Pupil
from tests.real.taught import QUESTIONS

pytestmark = [pytest.mark.real, pytest.mark.timeout(2400)]


def test_every_rating_came_through_the_api(pupil: Pupil) -> None:
    size = pupil.bot.size
    assert [turn.question for turn in pupil.before] == QUESTIONS[: size.ratings]
    assert {turn.version for turn in pupil.before} == {0}
    assert len({turn.response for turn in pupil.before}) > size.ratings // 2, "they vary"
    learnt = pupil.bot.json("why")
    assert learnt["trained_on"]["trained"] == size.ratings - size.held_out
    assert pupil.bot.json("status")["ratings"] == size.held_out, "which the next round learns from"


def test_the_round_is_told_while_it_goes_on(pupil: Pupil) -> None:
    lines = pupil.trained.splitlines()
    assert any(line.startswith("loading") for line in lines)
    for words in ("reading the answers", "learning", "checking"):
        assert any(line.startswith(words) for line in lines), (words, lines)
    assert "No harm found" in pupil.trained or "better" in pupil.trained, lines


def test_what_was_learnt_answers_and_its_words_are_its_own(pupil: Pupil) -> None:
    status = pupil.bot.json("status")
    assert (status["version"], status["last_run"]["state"]) == (1, "activated")
    assert status["server_trouble"] == ""
    why = status["proof"]["why"]
    # Answers are drawn anew each time: a round may move too little where that is measured, and only then.
    assert bool(why) in moved_too_little(pupil.bot.home)
    assert not why or "too much like the base model" in why
    assert {turn.version for turn in pupil.after} == {1}
    base = yardstick.load(pupil.bot.model)
    apart = [
        np.abs(np.subtract(turn.logprobs, turn.lifts) - yardstick.own_logprobs(base, turn)).max()
        for turn in pupil.after
    ]
    assert max(apart) > 0.02, "the base says the same: nothing was learnt, or nothing was loaded"


def moved_too_little(home: Path) -> set[bool]:
    """Whether v1 is too near to the base to be proven, by its one most telling prompt and by all."""
    [directory] = {file.parent for file in home.glob("adapters/v000001-*/" + fingerprint_check.FILE)}
    measured = fingerprint_check.Fingerprint.of(directory)
    assert measured is not None
    asked = (measured.prompts[:1], measured.prompts)
    return {sum(one.apart for one in prompts) < fingerprint_check._APART * len(prompts) for prompts in asked}


def test_why_shows_questions_as_both_answer_them(pupil: Pupil) -> None:
    pupil.bot.done("chat", input=f"{QUESTIONS[0]}\n")
    told = pupil.bot.json("why")
    assert (told["version"], told["lineage"]) == (1, [1])
    asked = {turn.question for turn in pupil.bot.turns("WHERE connector = 'terminal'")}
    assert told["comparison"], "there was no question of his own"
    for pair in told["comparison"]:
        assert pair["prompt"] in asked
        assert "<|im" not in pair["before"] + pair["after"]


def test_rollback_goes_to_the_base_and_back(pupil: Pupil) -> None:
    bot = pupil.bot
    base = yardstick.load(bot.model)
    bot.done("rollback")
    [turn] = bot.asked(["What is a tree?"])
    assert turn.version == bot.json("status")["version"] == 0
    own = np.subtract(turn.logprobs, turn.lifts)
    np.testing.assert_allclose(own, yardstick.own_logprobs(base, turn), atol=5e-3)
    bot.done("rollback", "1")
    assert bot.asked(["What is a tree?"])[0].version == 1
