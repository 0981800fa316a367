# SPDX-License-Identifier: Apache-2.0
"""What passes, what is refused, and the sentence that it says: no more than the figures do."""

from __future__ import annotations

import re

import pytest
from goodbot.api.sentences import brief, words
from goodbot_training.gate import Verdict, decide
from goodbot_training.job.types import TrainingSettings

SETTINGS = TrainingSettings()
SOUND: dict[str, float] = {
    "finite": 1.0,
    "fits": 1.0,
    "held_out": 8.0,
    "margin_change": 0.4,
    "margin_low": 0.1,
    "margin_high": 0.7,
    "told": 8.0,
    "told_rounds": 1.0,
    "told_change": 0.4,
    "told_low": 0.05,
    "told_high": 0.75,
    "compared": 64.0,
    "anchors": 128.0,
    "foreign": 2.0,
    "foreign_before": 0.0,
    "retained": 0.99,
    "sure": 1000.0,
    "anchor_loss_change": 0.3,
    "drift": 0.3,
    "length_ratio": 0.3,
    "length_before": 640.0,
    "length_after": 192.0,
    "empty_before": 0.0,
    "empty_after": 0.0,
    "looping_before": 0.0,
    "looping_after": 0.02,
    "unfinished_before": 0.125,
    "unfinished_after": 0.1,
    "prompts": 40.0,
    "distinct_before": 0.95,
    "distinct_after": 0.8,
}
ENOUGH = {"told": 64.0, "told_rounds": 8.0}


def test_with_few_held_out_ratings_it_claims_no_harm_and_nothing_else() -> None:
    verdict = decide(SOUND, SETTINGS)
    assert verdict.passed
    assert verdict.reason == (
        "No harm found in 128 test answers (2 unusual for this model). "
        "8 ratings kept for the check are too few to tell whether it is better."
    )
    assert decide(SOUND | {"foreign": 0.0}, SETTINGS).reason.startswith("No harm found in 128 test answers. ")


def test_better_is_said_with_an_interval_that_excludes_nothing() -> None:
    better = decide(SOUND | ENOUGH, SETTINGS)
    assert better.passed
    assert "It tells good from bad answers better: +0.40 (99% interval +0.05 to" in better.reason
    assert "on 64 ratings kept for the check of 8 rounds" in better.reason
    unclear = decide(SOUND | ENOUGH | {"told_low": -0.01}, SETTINGS)
    assert unclear.passed
    assert "It is not clear whether it is better: +0.40 (99%" in unclear.reason


@pytest.mark.parametrize("told", [0.0, 1.0, 8.0, 59.0, 60.0, 640.0])
@pytest.mark.parametrize("low", [-0.5, 0.05])
def test_no_share_and_no_margin_stands_without_its_interval(told: float, low: float) -> None:
    reason = decide(SOUND | {"told": told, "told_low": low}, SETTINGS).reason
    assert ("better:" in reason) == (told >= 60), reason
    assert ("to tell whether it is better." in reason) == (told < 60), reason
    bare = re.sub(r"[+-][\d.]+ \(99% interval [+-][\d.]+ to [+-][\d.]+\)", "", reason)
    assert "%" not in bare, reason
    assert not re.search(r"\d\.\d", bare), reason


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"finite": 0.0}, "not finite"),
        ({"fits": 0.0}, "another model"),
        ({"changed": 0.0}, "nothing to learn"),
        ({"speaks": 0.0}, "numbers that are not finite"),
        (
            {"margin_high": -0.1, "margin_low": -0.7, "margin_change": -0.4},
            "worse than the version before it: -0.40 (95% interval -0.70 to -0.10) on 8",
        ),
        (ENOUGH | {"told_high": -0.1, "told_low": -0.5}, "makes it worse"),
        ({"foreign": 20.0}, "lost knowledge: 20 of 128"),
        (
            {"retained": 0.9},
            "it has lost language: of 1000 words that the base model is sure of, it "
            "does not expect 100 any more (allowed: 50).",
        ),
        (
            {"anchor_loss_change": 2.0},
            "it expects the base model's own answers less than before: by 2.00 over 64 answers "
            "(allowed: 1.5).",
        ),
        ({"drift": 3.0}, "too far from the base model's: 3.00 over 128 answers"),
        ({"empty_after": 0.25}, "16 of 64 of its answers are empty (the base: 0 of 64)"),
        ({"looping_after": 0.5}, "repeat themselves"),
        ({"unfinished_after": 0.9}, "come to no end (the base: 8 of 64)"),
        (
            {"length_ratio": 3.0, "length_after": 1920.0},
            "too long: 1920 tokens in 64, the base's 640 (allowed: 103 to 1600).",
        ),
        ({"length_ratio": 0.1, "length_after": 64.0}, "too short: 64 tokens in 64, the base's 640"),
        (
            {"distinct_after": 0.1},
            "the same answer to different questions: 4 of 40 are different (the base: 38 of 40).",
        ),
    ],
)
def test_what_is_broken_is_refused_with_its_figures(figures: dict[str, float], words: str) -> None:
    verdict = decide(SOUND | figures, SETTINGS)
    assert not verdict.passed
    assert words.lower() in verdict.reason.lower(), verdict.reason
    assert verdict.reason.endswith("."), "a sentence"
    for number in re.findall(r"\d\.\d+|\d+%", verdict.reason):
        assert number in ("95%", "99%") or "over" in verdict.reason or "interval" in verdict.reason, number
    assert not verdict.reason[0].islower()


def test_a_bad_round_among_good_ones_is_refused_by_its_own_ratings_only() -> None:
    """What the rounds before it have done is neither its fault nor its merit."""
    fell = {"margin_low": -0.9, "margin_change": -0.5, "margin_high": -0.1}
    assert not decide(SOUND | ENOUGH | fell, SETTINGS).passed
    unsure = {"margin_low": -0.9, "margin_change": -0.3, "margin_high": 0.3}
    assert decide(SOUND | ENOUGH | unsure, SETTINGS).passed


def test_what_the_base_says_as_often_itself_up_to_chance_is_no_loss() -> None:
    def verdict(base: float, candidate: float) -> Verdict:
        return decide(SOUND | {"foreign_before": base, "foreign": candidate}, SETTINGS)

    assert verdict(0, 19).passed
    assert not verdict(0, 20).passed, "where the base has none, none is chance"
    assert verdict(8, 27).passed, "3 √(2 · 8) = 12 is less"
    assert not verdict(8, 28).passed
    assert verdict(32, 56).passed, "3 √(2 · 32) = 24"
    refused = verdict(32, 57)
    assert "57 of 128 test answers" in refused.reason
    assert "(before: 32, allowed: 24 more)" in refused.reason


def test_one_or_two_odd_answers_among_few_are_chance() -> None:
    few = TrainingSettings(gate_anchors=8)
    assert decide(SOUND | {"anchors": 8.0, "foreign": 2.0}, few).passed
    assert not decide(SOUND | {"anchors": 8.0, "foreign": 3.0}, few).passed
    many = TrainingSettings(gate_anchors=512)
    assert decide(SOUND | {"anchors": 512.0, "foreign": 38.0}, many).passed
    assert not decide(SOUND | {"anchors": 100.0, "foreign": 39.0}, many).passed


def test_what_could_not_be_measured_vetoes_nothing() -> None:
    verdict = decide({"finite": 1.0, "held_out": 0.0, "told": 0.0, "told_rounds": 0.0}, SETTINGS)
    assert verdict.passed
    assert verdict.reason == (
        "No test answers were asked for. No good and bad ratings were kept to tell whether it is better."
    )


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({"foreign": 30.0, "anchors": 256.0}, True),
        ({"foreign": 39.0, "foreign_before": 1.0, "anchors": 256.0}, True),
        ({"foreign": 40.0, "foreign_before": 1.0, "anchors": 256.0}, False),
        ({"foreign": 27.0, "foreign_before": 3.0}, False),  # of 128
        ({"margin_high": -0.1}, True),
        ({}, False),
    ],
)
def test_only_what_answers_and_has_lost_at_most_twice_what_is_allowed_is_too_strong(
    change: dict[str, float], may: bool
) -> None:
    assert decide({**SOUND, **change}, SETTINGS).too_strong(SETTINGS) is may
    never = TrainingSettings(gate_retry=0.0)
    assert not decide({**SOUND, **change}, never).too_strong(never)
    for broken in ({"finite": 0.0}, {"fits": 0.0}, {"speaks": 0.0}):
        assert not decide(broken, SETTINGS).too_strong(SETTINGS)


def test_a_second_verdict_tells_of_the_first() -> None:
    refused, passed = decide({**SOUND, "foreign": 30.0}, SETTINGS), decide(SOUND, SETTINGS)
    again = refused.again(passed, 0.5)
    assert again.passed
    assert again.reason.startswith("50% of the change is kept. No harm found")
    news = words(*brief(again.said))
    assert news.startswith(
        "50% of the change is kept, since more of it made 30 test answers odd. No harm found"
    )
    assert "knowledge" not in news
    assert " At full strength it has lost knowledge: 30 of 128 test answers" in again.reason
    told = refused.again(passed, 0.25, 0.5).reason
    assert told.startswith("25% of the change is kept. No harm found")
    assert " At 50% it has lost knowledge: 30 of 128 test answers" in told
    twice = refused.again(refused, 0.5)
    assert (twice.passed, twice.reason[:38]) == (False, "50% of the change is too much, too. It")
