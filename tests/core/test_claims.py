"""Which ratings a run takes: forty are 32 and 8, both signs are kept, nothing is kept twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.claims import claim, share_weights
from goodbot.ratings import RewardPolicy
from goodbot.store import claimable
from goodbot.store.claimable import Candidate
from goodbot.store.runs import Item
from goodbot_training.rewards import binary
from hypothesis import given
from hypothesis import strategies as st

from tests.core.builders import open_bot, turn

POLICY = RewardPolicy(name="binary", fn=binary)


def candidates(
    labels: list[Mapping[str, float]], *, held: frozenset[int] = frozenset()
) -> list[Any]:
    return [
        Candidate(turn=turn(f"t{i}"), labels=given, held_out_before=i in held, seq=i)
        for i, given in enumerate(labels)
    ]


def split(items: tuple[Item, ...], name: str) -> list[Item]:
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


@given(
    st.lists(opinions, max_size=60),
    st.frozensets(st.integers(0, 59)),
    st.floats(0.01, 0.9),
)
def test_what_holds_always(
    labels: list[dict[str, float]], held: frozenset[int], share: float
) -> None:
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


# -- the most that one rater weighs

crowds = st.lists(st.frozensets(st.sampled_from("abcdefg"), min_size=1), max_size=40)


def weighed(raters: list[frozenset[str]], weights: list[float]) -> dict[str, float]:
    """What each rater has of the round: of each turn the part that is theirs, cut down or not."""
    own: dict[str, list[float]] = {}
    for crowd in raters:
        for rater in crowd:
            own.setdefault(rater, []).append(1 / len(crowd))
    alone = {r: w for c, w in zip(raters, weights, strict=True) if len(c) == 1 for r in c}
    return {r: sum(parts) * alone.get(r, 1.0) for r, parts in own.items()}


@given(crowds, st.floats(0.05, 1.0))
def test_from_the_third_rater_on_none_has_more_than_the_share(
    turns: list[frozenset[str]], share: float
) -> None:
    # Each rater has rated one answer alone as well: its weight shows how much theirs counts.
    raters = turns + [frozenset(rater) for rater in {r for turn in turns for r in turn}]
    weights = share_weights(raters, share)
    assert all(0 < weight <= 1 for weight in weights)
    crowd = {rater for turn in raters for rater in turn}
    if len(crowd) < 3:
        assert set(weights) <= {1.0}
        return
    cap = max(share, 1 / len(crowd)) * sum(weights)
    owned = weighed(raters, weights)
    assert sum(owned.values()) == pytest.approx(sum(weights))
    assert max(owned.values()) <= cap * (1 + 1e-9)
    untouched = [rater for rater, weight in owned.items() if weight < cap * (1 - 1e-9)]
    alone = {r: w for t, w in zip(raters, weights, strict=True) if len(t) == 1 for r in t}
    assert all(alone[rater] == 1 for rater in untouched), "only who is above it is cut down"


@given(crowds, st.floats(0.05, 1.0), st.randoms())
def test_the_weights_do_not_depend_on_the_order(
    turns: list[frozenset[str]], share: float, random: Any
) -> None:
    weights = share_weights(turns, share)
    order = list(range(len(turns)))
    random.shuffle(order)
    assert share_weights([turns[i] for i in order], share) == [weights[i] for i in order]


def test_thirty_of_one_and_ten_of_four_others() -> None:
    weights = share_weights(
        [["a"]] * 30 + [["b"]] * 4 + [["c"]] * 3 + [["d"]] * 3 + [["e"]] * 2, 0.25
    )
    assert sum(weights[:30]) == pytest.approx(4), "a quarter of 16"
    assert weights[30:] == [1.0] * 12


def test_a_run_weighs_what_it_trains_on_and_not_what_the_gate_keeps() -> None:
    labels = [{"a": 1.0}, {"a": -1.0}] * 18 + [{"b": 1.0}, {"b": -1.0}, {"c": 1.0}, {"c": -1.0}]
    items = claim(candidates(labels), POLICY, held_out_share=0.2, rater_share=0.25)
    assert {item.weight for item in split(items, "held_out")} == {1.0}
    train = split(items, "train")
    heavy = sum(item.weight for item in train if "a" in item.labels)
    assert heavy <= sum(item.weight for item in train) / 3 + 1e-9


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
        found = await bot.store.read(lambda db: claimable.candidates(db, bot.app.trainer._pool))
        assert [candidate.held_out_before for candidate in found] == [True, True]
