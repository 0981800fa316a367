# SPDX-License-Identifier: Apache-2.0
"""Which ratings a run takes: forty are 32 and 8, both signs are kept, nothing is kept twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.labels import Opinion
from goodbot.api.rewards import Moments, RewardPolicy
from goodbot.api.turns import Turn
from goodbot.learning.training.claims import MEMORY, age_weight, claim, noted
from goodbot.store import people, training_pool
from goodbot.store.runs import RunItem
from goodbot.store.training_pool import Candidate
from goodbot_training.objectives.rewards import binary
from hypothesis import given
from hypothesis import strategies as st

from tests.core.builders import open_bot, turn

POLICY = RewardPolicy(name="binary", fn=binary)


def candidates(labels: list[Mapping[str, float]], *, held: frozenset[int] = frozenset()) -> list[Any]:
    return [
        Candidate(turn=turn(f"t{i}"), labels=given, held_out_before=i in held, seq=i)
        for i, given in enumerate(labels)
    ]


def split(items: tuple[RunItem, ...], name: str) -> list[RunItem]:
    return [item for item in items if item.split == name]


def test_forty_are_thirty_two_and_eight() -> None:
    items = claim(candidates([{"a": 1.0}, {"a": -1.0}] * 20), POLICY, held_out_share=8 / 40)
    assert (len(split(items, "train")), len(split(items, "held_out"))) == (32, 8)
    assert sum(item.reward > 0 for item in split(items, "held_out")) == 4
    assert [item.turn for item in items] == [f"t{i}" for i in range(40)]


@pytest.mark.parametrize("good", [1, 2, 20, 38, 39])
def test_both_signs_are_kept_wherever_there_are_both(good: int) -> None:
    labels = [{"a": 1.0}] * good + [{"a": -1.0}] * (40 - good)
    held = split(claim(candidates(labels), POLICY, held_out_share=0.2), "held_out")
    assert {item.reward for item in held} == {1.0, -1.0}
    assert len(held) == 8


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_of_one_sign_alone_the_share_is_kept(value: float) -> None:
    items = claim(candidates([{"a": value}] * 40), POLICY, held_out_share=0.2)
    assert len(split(items, "held_out")) == 8


opinions = st.dictionaries(st.sampled_from("abc"), st.sampled_from([1.0, -1.0]), min_size=1)


@given(st.lists(opinions, max_size=60), st.frozensets(st.integers(0, 59)), st.floats(0.01, 0.9))
def test_what_holds_always(labels: list[dict[str, float]], held: frozenset[int], share: float) -> None:
    found = candidates(labels, held=held)
    items = claim(found, POLICY, held_out_share=share)
    ties = {c.turn.id for c in found if sum(c.labels.values()) == 0}
    assert {item.turn for item in items} == {c.turn.id for c in found} - ties
    kept = {item.turn for item in split(items, "held_out")}
    assert not kept & {f"t{i}" for i in held}  # nothing is kept twice
    assert len(kept) <= share * len(items) + 0.5
    fresh = [item for item in items if item.turn not in {f"t{i}" for i in held}]
    assert len(kept) >= min(len(fresh), int(share * len(items) + 0.5)) - 1
    signs = {item.reward > 0 for item in fresh}
    if len(kept) >= 2:
        assert {i.reward > 0 for i in split(items, "held_out")} == signs
    assert all(-1 <= item.reward <= 1 for item in items)
    assert claim(found, POLICY, held_out_share=share) == items  # the choice repeats


def test_a_policys_odd_reward_is_kept_in_bounds() -> None:
    wild = RewardPolicy(name="wild", fn=lambda ratings: 17.0 * ratings[0].value)
    items = claim(candidates([{"a": 1.0}, {"a": -1.0}]), wild, held_out_share=0.2)
    assert [item.reward for item in items] == [1.0, -1.0]


# -- how much each weighs


def test_a_run_weighs_what_it_trains_on_and_not_what_the_gate_keeps() -> None:
    labels = [{"a": 1.0}, {"a": -1.0}] * 12 + [{"b": 1.0}, {"b": -1.0}] * 4 + [{"c": 1.0}] * 8
    items = claim(candidates(labels), POLICY, held_out_share=0.2, rater_share=0.25)
    assert {item.weight for item in split(items, "held_out")} == {1.0}
    train = split(items, "train")
    heavy = sum(item.weight for item in train if "a" in item.labels)
    assert 0 < heavy <= sum(item.weight for item in train) / 3 + 1e-9


def test_near_repetitions_weigh_as_few_and_are_held_out_last() -> None:
    once = [asked(f"t{i}", words(i)) for i in range(10)]
    again = [asked(f"r{i}", words(99)) for i in range(30)]
    found = [
        Candidate(turn=t, labels={"a": 1.0}, held_out_before=False, seq=i) for i, t in enumerate(once + again)
    ]
    items = claim(found, POLICY, held_out_share=0.2, duplicate_limit=3)
    held = {item.turn for item in split(items, "held_out")}
    assert len(held) == 8
    assert held <= {t.id for t in once}
    repeated = [item.weight for item in items if item.turn.startswith("r")]
    assert sum(repeated) == pytest.approx(3)
    plain = claim(found, POLICY, held_out_share=0.2)
    assert {item.weight for item in plain} == {1.0}, "only where it is asked for"


def test_good_and_bad_answers_to_one_question_are_no_repetition_of_each_other() -> None:
    found = [
        Candidate(turn=asked(f"t{i}", words(1)), labels={"a": value}, held_out_before=False, seq=i)
        for i, value in enumerate([1.0, -1.0] * 6)
    ]
    items = claim(found, POLICY, held_out_share=0.0, duplicate_limit=3)
    assert {item.weight for item in items} == {0.5}, "three of six, on either side"


def asked(id_: str, question: str) -> Turn:
    return turn(id_, messages=[{"role": "user", "content": question}])


def words(number: int) -> str:
    return " ".join(f"word{number * 50 + n}" for n in range(20))


def test_a_rating_of_an_older_adapters_answer_weighs_less() -> None:
    assert [age_weight(age, 2.0) for age in (0, 1, 2, 4)] == pytest.approx([1, 0.5**0.5, 0.5, 0.25])
    assert age_weight(7, 0.0) == 1
    assert age_weight(10_000, 0.1) > 0
    found = [replace(c, age=i) for i, c in enumerate(candidates([{"a": 1.0}] * 3))]
    items = claim(found, POLICY, held_out_share=0.0, age_half_life=1.0)
    assert [item.weight for item in items] == [1, 0.5, 0.25]


def test_what_is_replayed_trains_and_is_never_held_out() -> None:
    found = [replace(c, replayed=i < 10) for i, c in enumerate(candidates([{"a": 1.0}, {"a": -1.0}] * 15))]
    items = claim(found, POLICY, held_out_share=0.5)
    assert [item.replayed for item in items] == [True] * 10 + [False] * 20
    assert len(split(items, "held_out")) == 10, "half of the twenty new ones"
    assert not any(item.replayed for item in split(items, "held_out"))


def test_a_policy_that_rescales_sees_the_last_rounds_and_this_one() -> None:
    seen: list[Moments] = []

    def rescale(reward: float, recent: Moments) -> float:
        seen.append(recent)
        return reward - recent.mean

    policy = RewardPolicy(name="moving", fn=lambda ratings: ratings[0].value, rescale=rescale)
    past = [{"a": 0.5}, {"a": 0.5}]
    items = claim(candidates([{"a": 1.0}, {"a": 0.0}]), policy, held_out_share=0.0, past=past)
    assert seen == [Moments(mean=0.5, deviation=0.125**0.5, count=4)] * 2
    assert [item.reward for item in items] == [0.5, -0.5]
    claim(candidates([{"a": 1.0}]), policy, held_out_share=0.0, past=past * 500)
    assert seen[-1].count == MEMORY


def test_a_reward_of_zero_takes_no_side_and_is_not_held_out() -> None:
    middling = RewardPolicy(name="ordinal", fn=lambda ratings: ratings[0].value)
    items = claim(candidates([{"a": 0.0}, {"a": 1.0}] * 4), middling, held_out_share=0.5)
    assert {item.reward for item in split(items, "held_out")} == {1.0}


async def test_what_was_held_out_trains_next_and_is_not_held_out_again(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        first = set(await bot.trained(1))
        held = {answer.turn for answer in bot.answers} - first
        assert len(held) == 2
        await bot.rated(8)
        await bot.train()
        second = set(await bot.trained(2)) - first
        assert held <= second
        assert len(second) == 7  # of ten, three of the new ones are held out


async def test_a_refused_run_has_used_its_ratings_and_a_failed_one_has_not(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="nan")
        assert (await bot.train()).state == "failed"
        assert (await bot.status())["ratings"] == 8
        bot.fake.set(train="refuse")
        assert (await bot.train()).state == "refused"
        assert (await bot.status())["ratings"] == 2
        found = await bot.store.read(lambda db: training_pool.candidates(db, bot.app.trainer._pool))
        assert [candidate.held_out_before for candidate in found] == [True, True]


def test_who_is_outvoted_weighs_nothing_and_is_not_held_out() -> None:
    """Three like what begins with "yes", one what does not; some answers two of them have rated."""
    found: list[Candidate] = []
    for number in range(60):
        liked, who = number % 3 == 0, ("a", "b", "c", "liar")[number % 4]
        like = 1.0 if liked else -1.0
        labels: dict[str, Opinion] = {who: -like if who == "liar" else like}
        if number % 10 == 3:
            labels = {"a": like, "liar": -like}
        answered = replace(asked(f"t{number}", words(number)), response="yes" if liked else "no")
        found.append(Candidate(turn=answered, labels=labels, held_out_before=False, seq=number))
    items = claim(found, POLICY, held_out_share=0.2, spared=())
    alone = [item for item in items if item.labels.keys() == {"liar"}]
    assert alone
    assert {(item.weight, item.split) for item in alone} == {(0.0, "train")}
    assert len(split(items, "held_out")) > 0
    both = [item for item in items if item.turn.endswith("3") and item not in alone]
    assert both
    assert all(abs(item.reward) == 1.0 for item in both), "no tie: the liar is not heard"
    assert all(item.weight > 0 for item in both)
    counted = claim(found, POLICY, held_out_share=0.2)
    assert all(item.weight == 1.0 for item in counted), "only where it is asked for"
    spared = claim(found, POLICY, held_out_share=0.2, spared=["liar"])
    assert all(item.weight > 0 for item in spared)


async def test_owners_are_those_of_the_config_and_of_grants_in_the_browser_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.store.write(lambda db: people.grant(db, "slack:U2", "owner", by="cli", now=1.0))
        await bot.store.write(lambda db: people.grant(db, "slack:U3", "rater", by="cli", now=1.0))
        pool = replace(bot.app.trainer._pool, owners=("slack:U1",))
        found = await bot.store.read(lambda db: training_pool.owners(db, pool))
    assert found == {"slack:U1", "web:slack:U1", "slack:U2", "web:slack:U2"}


def test_nobody_teaches_more_than_their_share_with_notes() -> None:
    """Three have rated as many answers each; whose note is taught on theirs still has a third."""
    items = [
        RunItem(turn=f"{who}{n}", split="train", reward=1.0, labels={who: 1.0})
        for who in "abc"
        for n in range(6)
    ]
    theirs = {f"a{n}": [7] for n in range(6)}
    of = {item.turn: item for item in noted(items, theirs, {7: {"a"}}, rater_share=0.25)}
    taught = [of[f"a{n}"] for n in range(6)]
    assert [(one.weight, one.note_weight, one.notes) for one in taught] == [(0.5, 0.5, (7,))] * 6
    assert {one.weight for turn, one in of.items() if turn not in theirs} == {1.0}
    all_ = noted(items, {item.turn: [7] for item in items}, {7: {"a", "b", "c"}}, rater_share=0.25)
    assert {(one.weight, one.note_weight) for one in all_} == {(1.0, 1.0)}, "all have asked for it"
    one_ = noted(items, {item.turn: [7] for item in items}, {7: {"a"}}, rater_share=0.25)
    parts = sum(one.note_weight for one in one_) + sum(one.weight for one in one_[:6])
    rest = sum(one.weight for one in one_[6:])
    assert parts == pytest.approx((parts + rest) / 3), "what is taught on others' answers is as much theirs"
    assert noted(items[:6], theirs, {7: {"a"}})[0].weight == 1.0, "alone nobody is held back"


def test_a_note_weighs_one_raters_part_and_is_taught_where_people_have_rated() -> None:
    both = RunItem(turn="both", split="train", reward=1.0, labels={"a": 1.0, "b": 1.0}, weight=0.5)
    held = RunItem(turn="held", split="held_out", reward=1.0, labels={"a": 1.0})
    judged = RunItem(turn="judged", split="train", reward=1.0, labels={"judge:rule": 1.0}, weight=0.2)
    none = RunItem(turn="none", split="train", reward=1.0, labels={"a": 1.0}, weight=0.0)
    items = [both, held, judged, none]
    found = noted(items, {item.turn: [7] for item in items}, {7: {"a"}})
    assert (found[0].note_weight, found[0].notes) == (0.25, (7,))
    assert found[1:] == (held, judged, none)
    assert noted(items, {}, {}) == tuple(items)
