# SPDX-License-Identifier: Apache-2.0
"""Who contradicts is found, who does not is left alone, and how often that goes wrong is known."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pytest
from goodbot.learning.rating_quality.contradictions import FALSE_ALARM_EVERY, against_others, against_own
from goodbot.store.vote_history import Vote

HOUR = 3600.0


def votes(opinions: Iterable[Mapping[str, bool]]) -> list[Vote]:
    """One answer after the other, each rated by those named."""
    found = [(f"t{n}", who, good) for n, each in enumerate(opinions) for who, good in each.items()]
    return [
        Vote(turn=turn, rater=who, good=good, time=seq * HOUR, seq=seq)
        for seq, (turn, who, good) in enumerate(found, 1)
    ]


def team(answers: int, seed: int, noise: float, liar: str = "", since: int = 0) -> list[Vote]:
    """Four raters of the same answers, each wrong now and then; the liar turns at some point."""
    chance = random.Random(seed)
    made: list[dict[str, bool]] = []
    for number in range(answers):
        truth = chance.random() < 0.5
        said = {who: truth ^ (chance.random() < noise) for who in ("ada", "bob", "cy", "dee")}
        if liar and number >= since:
            said[liar] = not truth
        made.append(said)
    return votes(made)


@pytest.mark.parametrize("seed", range(5))
def test_one_of_four_who_turns_round_is_named_soon_and_alone(seed: int) -> None:
    since = 40
    for answers in range(since, since + 40):
        found = against_others(team(answers, seed, 0.1, "cy", since))
        assert {alarm.rater for alarm in found} <= {"cy"}
        if found:
            break
    else:
        pytest.fail("no alarm in forty opposite ratings")
    [alarm] = found
    assert answers - since <= 30
    assert (alarm.against, alarm.count > alarm.of / 2) == ("others", True)
    assert alarm.since >= 0.8 * since * 4 * HOUR, "it says when it began"


def test_who_was_only_contradicted_by_the_liar_is_cleared() -> None:
    """Ada shares most of her answers with the liar, some with the others, who agree with her."""
    with_liar = [{"ada": n % 2 == 0, "liar": n % 2 == 1} for n in range(30)]
    with_others = [{"ada": True, "bob": True, "cy": True} for _ in range(8)]
    against = [{"liar": False, "bob": True, "cy": True} for _ in range(20)]
    found = against_others(votes([*with_others, *against, *with_liar]))
    assert [alarm.rater for alarm in found] == ["liar"]


def test_of_two_alone_with_each_other_both_are_named() -> None:
    found = against_others(votes({"ada": True, "bob": False} for _ in range(20)))
    assert {alarm.rater for alarm in found} == {"ada", "bob"}
    assert not against_others(votes({"ada": True, "bob": True} for _ in range(500)))


def test_an_alarm_can_be_lived_down() -> None:
    opposed = [{"ada": False, "bob": True, "cy": True}] * 60
    agreed = [{"ada": True, "bob": True, "cy": True}] * 20
    assert [alarm.rater for alarm in against_others(votes(opposed))] == ["ada"]
    assert against_others(votes(opposed + agreed)) == []


def test_a_team_whose_tastes_differ_sets_its_own_measure() -> None:
    """Each rater goes by a coin in four of ten answers: pairs differ in a third of them."""
    assert against_others(team(400, 1, 0.2)) == []


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Honest pairs that differ in a quarter: 60 runs of 200 comparable ratings, 12,000 in all."""
    chance = random.Random(7)
    went_on = 0
    for _ in range(60):
        made = [{"ada": True, "x": True, "y": True} for _ in range(200)]
        for each in made:
            each["ada"] = chance.random() >= 0.25
        said = votes(made)
        went_on += any(against_others(said[: 3 * n]) for n in range(10, 201, 10))
    assert went_on <= 3 * 12_000 / FALSE_ALARM_EVERY


def history(flips: int, *, after: float = 2 * HOUR, first: int = 40) -> list[Vote]:
    """So many answers rated good, then that many of them turned round."""
    made = [(n, True, n * 60.0) for n in range(first)]
    made += [(n, False, n * 60.0 + after + first * 60.0) for n in range(flips)]
    return [
        Vote(turn=f"t{n}", rater="ada", good=good, time=time, seq=seq)
        for seq, (n, good, time) in enumerate(made, 1)
    ]


def test_turning_many_old_ratings_round_at_once_is_told() -> None:
    assert against_own(history(3)) == []
    [alarm] = against_own(history(10))
    assert (alarm.rater, alarm.against, alarm.count, alarm.of) == ("ada", "own", 10, 10)


def test_corrections_within_the_hour_are_no_flips() -> None:
    assert against_own(history(40, after=-40 * 60.0 + 300.0)) == []


def test_a_second_thought_now_and_then_is_no_alarm() -> None:
    chance = random.Random(3)
    made: list[Vote] = []
    for seq in range(1, 3000):
        old = chance.random() < 0.04 and seq > 200
        turn = seq - 150 if old else seq
        made.append(Vote(turn=f"t{turn}", rater="ada", good=not old, time=seq * 600.0, seq=seq))
    assert against_own(made) == []
