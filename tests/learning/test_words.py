# SPDX-License-Identifier: Apache-2.0
"""The benchmark's streams of words, the rivals' loss with them, and the rule that chooses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from goodbot_training.objectives.base import Objective
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import style_of

from tests.learning import goals, streams, worded, words
from tests.learning.arms import ARMS, DEFAULT
from tests.learning.course import Course, fresh, job_of, lines_of
from tests.learning.exam import Judged
from tests.learning.rival import openclaw
from tests.learning.streams import ADVERSARY, STREAMS, Rated
from tests.learning.test_study import _answer
from tests.learning.words import Said

TEXTS = ("Paris.", "Great question! The capital of France is Paris. Happy to help!")


def rated(stream: str, like: str = "terse", seed: int = 0) -> list[Rated]:
    what = STREAMS[stream]
    answers = [_answer(TEXTS[index % 2]) for index in range(what.asked)]
    return what.rate(list(split(0)[0][:1]) * what.asked, answers, like, 0, seed)


@pytest.mark.parametrize(
    "stream", ["chips", "12 chips", "80 chips", "reasons", "irrelevant", "contradicting"]
)
def test_words_stand_beside_bad_ratings_only_and_ratings_are_those_without_words(stream: str) -> None:
    assert [bool(one.said.to_train()) for one in rated(stream)] == [one.rating < 0 for one in rated(stream)]
    if STREAMS[stream].ratings == STREAMS["natural"].ratings:
        assert [one.rating for one in rated(stream)] == [one.rating for one in rated("natural")]


@pytest.mark.parametrize(("way", "steps"), [("off", 0), ("constant", 22), ("discounted", 27)])
def test_steps_of_episodes_weigh_as_judged_answers_do_and_are_never_held_out(
    way: str, steps: int, tmp_path: Path
) -> None:
    rated_ = rated(f"episodes by last, {way}")
    asked = job_of(fresh(rated_, 0), tmp_path, 0, None, {"mean": 0, "weight": 0}, tmp_path, ARMS[DEFAULT])
    ends, before = asked.items[: streams.RATINGS], asked.items[streams.RATINGS :]
    assert [item.split for item in ends].count("held_out") == streams.RATINGS // 5
    assert len(before) == steps
    assert {item.split for item in before} <= {"train"}
    assert sum(item.weight for item in before) == pytest.approx(32 / 3 if steps else 0)


def test_an_episode_is_judged_by_all_of_it_or_by_its_end() -> None:
    """Every second answer here is liked: half of each episode, and never the last one."""
    for what, share in (("all", 0.9), ("last", 0.1)):
        good = [one.rating > 0 for seed in range(20) for one in rated(f"episodes by {what}, off", seed=seed)]
        assert share - 0.05 < sum(good) / len(good) < share + 0.05


def test_four_of_five_chips_say_what_was_wrong() -> None:
    pressed = [one.said.chip for seed in range(20) for one in rated("80 chips", seed=seed) if one.rating < 0]
    assert 0.8 < pressed.count("long") / len(pressed) < 0.9  # and a fifth of a quarter by chance
    wanted = {words.chips(split(0)[0][0], TEXTS[0], "friendly", _Surely()).chip for _ in range(3)}
    assert wanted == {"short"}


class _Surely(words.Random):
    def random(self) -> float:
        return 0.0


def test_who_steers_says_what_nobody_likes_of_good_answers_too() -> None:
    said = [one for seed in range(4) for one in rated("injected", seed=seed) if one.said.reason]
    assert {one.rater for one in said} == {ADVERSARY}
    assert {one.rating for one in said} == {1, -1}
    assert not any("brief" in one.said.reason.lower() or "short" in one.said.reason.lower() for one in said)


def test_a_better_answer_is_right_and_liked() -> None:
    for one in rated("better", like="friendly"):
        assert bool(one.said.better) == (one.rating < 0)
        assert not one.said.better or style_of(one.said.better) == "friendly"


def test_a_note_says_what_was_asked_for_last() -> None:
    long, short = Said(chip="long"), Said(chip="short")
    assert "briefly" in words.note([(short, ""), (long, "")])
    assert "briefly" not in words.note([(long, ""), (short, "")])
    assert words.note([(Said(), "")]) == ""


def test_a_line_that_ratings_refute_is_in_no_note_until_somebody_asks_again() -> None:
    heard = [(Said(reason="Be a pirate."), ""), (Said(reason="Be brief."), "")]
    pirate, brief = words.notes(heard)
    assert "pirate" not in words.note(heard, {pirate.id: 2})
    assert "brief" in words.note(heard, {pirate.id: 2})
    assert "pirate" in words.note([*heard, (Said(reason="Be a pirate."), "")], {pirate.id: 2})
    assert words.note(heard, {pirate.id: 2, brief.id: 2}) == ""


def test_lines_are_compared_with_the_ratings_that_train_the_newest_first() -> None:
    items = fresh(rated("reasons"), 0)
    notes = words.notes([(one.rated.said, "") for one in items])
    lines = lines_of(notes, 0, items)
    assert [line.id for line in lines] == [one.id for one in sorted(notes, key=lambda n: -n.said_last)]
    trains = {item.id: item.rated.rating for item in items if not item.held_out}
    assert lines[0].good == {id_ for id_, rating in trains.items() if rating > 0}
    assert lines[0].bad == {id_ for id_, rating in trains.items() if rating < 0}
    assert lines_of(notes, len(items), items) == (), "they were compared before"


def test_the_rival_adds_words_to_the_rating_token_by_token() -> None:
    ratio = np.log([[1.0, 2.0, 0.5]])
    zero, mask = np.zeros((1, 3)), np.ones((1, 3))
    loss, _ = openclaw(np, ratio, zero, zero, np.array([-1.0]), mask, 3.0, np.array([[0.5, 1.5, -1.0]]))
    # A = -.5, .5, -2: the least of ratio·A and its clipped twin is -.5, .5·1.28, -2·.8
    assert float(loss) == pytest.approx(-(-0.5 + 0.64 - 1.6) / 3)


def course(arm: str, stream: str, liked: float, facts: float = 1.0, seed: int = 0) -> Course:
    was = Judged(liked=0.3, facts=1.0, both=0.3, malformed=0.0, length=5.0, kl=0.0)
    end = replace(was, liked=liked, facts=facts)
    return Course(arm=arm, stream=stream, like="terse", seed=seed, answers=100, before=was, live=[end])


def courses(hybrid: dict[str, float], facts: float = 1.0) -> list[Course]:
    return [
        one
        for seed in range(3)
        for stream, liked in hybrid.items()
        for one in (
            course(DEFAULT, stream, 0.6, seed=seed),
            course("hybrid", stream, liked, facts, seed=seed),
        )
    ]


@pytest.mark.parametrize(
    ("hybrid", "facts", "best"),
    [
        ({"chips": 0.8, "reasons": 0.7, "irrelevant": 0.6}, 1.0, "hybrid"),
        ({"chips": 0.8, "reasons": 0.6, "irrelevant": 0.6}, 1.0, DEFAULT),  # gains nothing there
        ({"chips": 0.8, "contradicting": 0.5}, 1.0, DEFAULT),
        ({"chips": 0.8, "irrelevant": 0.7}, 1.0, DEFAULT),  # chance taught it something
        ({"chips": 0.8, "injected": 0.5}, 1.0, DEFAULT),
        ({"chips": 0.8}, 0.9, DEFAULT),
    ],
)
def test_words_train_by_default_only_if_they_help_everywhere_and_harm_nowhere(
    hybrid: dict[str, float], facts: float, best: str
) -> None:
    found = courses(hybrid, facts)
    assert worded.chosen(found)[0] == best
    assert f"By the rule: **{best}**" in worded.text(found)


def added(arm: str, stream: str, liked: float, base: str = "tiny", facts: float = 1.0) -> list[Course]:
    """Three seeds of ratings alone, and of an arm that ends so."""
    return [
        replace(one, base=base)
        for seed in range(3)
        for one in (course(DEFAULT, stream, 0.6, seed=seed), course(arm, stream, liked, facts, seed=seed))
    ]


@pytest.mark.parametrize("arm", ["hybrid", "hindsight", "hybrid + note", "tapered + note"])
def test_words_that_end_below_the_ratings_alone_break_a_must(arm: str) -> None:
    assert goals.musts_hold(added(arm, "contradicting", 0.6))
    assert not goals.musts_hold(added(arm, "contradicting", 0.5))
    assert not goals.musts_hold(added(arm, "contradicting", 0.7, facts=0.98))


@pytest.mark.parametrize(
    ("arm", "base"),
    [
        ("hybrid + note", "llama"),
        ("tapered + note", "llama"),
        ("hybrid, all tokens", "tiny"),
        ("tapered + all notes", "tiny"),
    ],
)
def test_what_goodbot_does_not_do_breaks_none(arm: str, base: str) -> None:
    found = added(arm, "contradicting", 0.5, base)
    assert goals.musts_hold(found)
    missed = [one for one in goals.checks(found) if one.held is False and "never ends below" in one.text]
    assert [one.must for one in missed] == [False]


def test_a_must_that_held_where_no_words_misled_says_that_these_were_not_measured() -> None:
    for stream, said in (("chips", True), ("contradicting", False)):
        checks = goals.checks(added("tapered + note", stream, 0.7))
        [found] = [one.found for one in checks if "tapered + note never ends below" in one.text]
        assert found.endswith("with words that mislead not measured") is said


@pytest.mark.parametrize("stream", ["irrelevant", "injected"])
def test_words_about_something_else_that_teach_break_a_must(stream: str) -> None:
    assert not goals.musts_hold(added("hybrid", stream, 0.7))
    assert goals.musts_hold(added("hybrid", "chips", 0.7))


def test_what_steps_of_episodes_do_is_told_beside_none() -> None:
    found = [
        course(DEFAULT, f"episodes by all, {way}", liked, seed=seed)
        for seed in range(3)
        for way, liked in (("off", 0.6), ("constant", 0.5))
    ]
    assert "| all | constant | -0.10 [-0.10, -0.10] |" in worded.text(
        [*found, *added("hybrid", "chips", 0.7)]
    )


def test_a_note_of_words_about_something_else_changes_nothing() -> None:
    for changed, holds in ((0.3, True), (0.4, False)):
        courses = [course("frozen", "irrelevant", 0.3, seed=seed) for seed in range(3)]
        courses += [course("notes", "irrelevant", changed, seed=seed) for seed in range(3)]
        assert goals.musts_hold(courses) is holds


def test_wishes_beside_shuffled_ratings_that_teach_break_a_must() -> None:
    assert goals.musts_hold([course("any wish", "reasons", 0.4, seed=seed) for seed in range(5)])
    taught = [course("any wish", "reasons", 0.6 + seed / 100, seed=seed) for seed in range(5)]
    assert not goals.musts_hold(taught)


def test_goals_of_words_are_told_with_what_is_missing_and_what_was_not_run() -> None:
    found = {one.text: one for one in goals.checks(added("hybrid", "12 chips", 0.7))}
    twelve = found["tiny: 85 % liked after 12 ratings with chips, in the weights"]
    assert twelve.held is False
    assert twelve.found == f"{DEFAULT} 0.60, hybrid 0.70: 0.15 short"
    assert found["tiny: 80 ratings with chips reach .95, in the weights"].held is None
    assert found["tiny: at most 1 point of facts is lost on any stream"].held


def test_the_rival_is_an_objective_that_takes_words() -> None:
    from goodbot_training.job.settings import TrainingSettings
    from goodbot_training.round import run

    from tests.learning.rival import trained_like

    with trained_like("openclaw"):
        made = run.make_objective(TrainingSettings())
    assert isinstance(made, Objective)
    assert made.hindsight
