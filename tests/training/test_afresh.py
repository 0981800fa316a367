# SPDX-License-Identifier: Apache-2.0
"""When a round starts from the base again: what was learnt is liked less than nothing learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot_training.job.types import Job
from goodbot_training.objectives import make_objective
from goodbot_training.round import restart
from goodbot_training.round.restart import prepare

from tests.support import require
from tests.training.factories import make_rollout, raw_item, raw_job
from tests.training.test_worker import make_job

Effects = dict[str, Any]
"""What an adapter adds to each projection's weights."""


def job(rated: list[tuple[int, float]], *, base: tuple[float, float] = (32.0, -0.2), **more: Any) -> Job:
    """A job whose parent is v2; `rated` are (version, reward), `base` the sum of weights and mean."""
    items = [
        raw_item(index, version=version, reward=reward, **more.pop("item", {}))
        for index, (version, reward) in enumerate(rated)
    ]
    baseline = {"mean": 0.1, "weight": 0.5, "base_n": base[0], "base_mean": base[1]}
    return Job.parse(raw_job(items=items, parent="/adapters/v2", baseline=baseline, **more))


def mixed(version: int, good: int, bad: int) -> list[tuple[int, float]]:
    return [(version, 1.0)] * good + [(version, -1.0)] * bad


def test_what_is_liked_less_than_the_base_is_left_behind() -> None:
    prepared, told = prepare(job(mixed(2, good=4, bad=36)))
    assert prepared.parent is None
    assert [one.code for one in told] == ["check_afresh"]


@pytest.mark.parametrize(
    ("rated", "why"),
    [
        (mixed(2, good=16, bad=24), "as liked as the base"),
        (mixed(2, good=0, bad=3), "three ratings are too few to tell"),
        (mixed(1, good=2, bad=38) + mixed(2, good=20, bad=5), "only an older version was disliked"),
        (mixed(0, good=2, bad=38), "the base's own answers"),
    ],
)
def test_it_goes_on_from_its_parent(rated: list[tuple[int, float]], why: str) -> None:
    prepared, told = prepare(job(rated))
    assert prepared.parent == Path("/adapters/v2"), why
    assert told == ()


def test_nothing_is_known_of_the_base() -> None:
    assert prepare(job(mixed(2, good=0, bad=40), base=(0.0, 0.0)))[1] == ()


def test_the_owner_may_forbid_it() -> None:
    settings = {"start_over": False}
    assert prepare(job(mixed(2, good=0, bad=40), settings=settings))[0].parent is not None


def test_the_base_s_answers_are_counted_once_and_for_all_rounds() -> None:
    counted = prepare(job(mixed(0, good=8, bad=0)))[0].baseline
    assert (counted.base_n, counted.base_mean) == (40.0, pytest.approx((32 * -0.2 + 8) / 40))
    held_out = prepare(job(mixed(0, good=8, bad=0), item={"split": "held_out"}))[0].baseline
    assert held_out.base_n == 32 + 7, "those train in a later round"


def test_a_rater_s_share_holds_here_too() -> None:
    rated = mixed(2, good=10, bad=30)
    light = [raw_item(i, version=v, reward=r, weight=1.0 if r > 0 else 0.2) for i, (v, r) in enumerate(rated)]
    baseline = {"mean": 0.1, "weight": 0.5, "base_n": 32.0, "base_mean": -0.2}
    raw = raw_job(items=light, parent="/adapters/v2", baseline=baseline)
    assert prepare(Job.parse(raw))[0].parent is not None


def prepared(
    rated: list[tuple[int, float]], objective: str = "tapered"
) -> tuple[Job, list[float], list[float]]:
    made, _ = prepare(job(rated, settings={"objective": objective}))
    return made, [item.reward for item in made.items], [item.weight for item in made.items]


def test_the_newest_version_s_answers_then_count_as_the_base_s_own() -> None:
    made, rewards, weights = prepared(mixed(2, good=4, bad=36))
    rule = make_objective(made.settings)
    against_base, after = restart.advantages(made, rule, rewards, weights)
    assert against_base == pytest.approx([1.2] * 4 + [-0.8] * 36), "r - m_base, which is -0.2"
    own, same = rule.advantages(made.baseline, rewards, weights)
    assert own == pytest.approx([1.8] * 4 + [-0.2] * 36), "against their own mean, -0.8"
    assert after == same
    rows = [make_rollout(reward=reward) for reward in rewards]
    for row in restart.written_by_the_base(made, rows):
        assert row.sampling_logprobs.tolist() == row.reference_logprobs.tolist()


@pytest.mark.parametrize(
    ("rated", "objective", "why"),
    [
        (mixed(2, good=16, bad=24), "tapered", "this round goes on from its parent"),
        (mixed(2, good=0, bad=40), "tapered", "nothing better is known: it stalls"),
        (mixed(2, good=4, bad=36), "scale", "its push against bad answers does not end"),
        (mixed(2, good=4, bad=36), "kto", "it asks for no mean"),
    ],
)
def test_else_they_are_what_they_were(rated: list[tuple[int, float]], objective: str, why: str) -> None:
    made, rewards, weights = prepared(rated, objective)
    rule = make_objective(made.settings)
    own = rule.advantages(made.baseline, rewards, weights)
    assert restart.advantages(made, rule, rewards, weights) == own, why
    rows = [make_rollout(reward=reward) for reward in rewards]
    assert restart.written_by_the_base(made, rows) is rows


def afresh_and_plain(model: Path, output: Path) -> tuple[list[str], list[Effects]]:
    """What rounds on the same ratings said and came to: on top of a version that is liked, of one that is
    liked less than the base, and on the base."""
    require("torch")
    from goodbot_training.backends.adapters import read_adapter
    from goodbot_training.backends.torch.trainer import TorchBackend
    from goodbot_training.round.run import run_round

    def round_(name: str, parent: str, base_mean: float) -> tuple[str, Effects]:
        (output / name).mkdir()
        raw = make_job(model, output / name, parent=str(output / parent) if parent else None)
        for item in raw["items"] if parent else []:
            item["version"] = 1
        baseline = {"mean": 0.0, "weight": 0.5, "base_n": 40.0, "base_mean": base_mean}
        raw |= {"behaviour": {"1": str(output / "first")}, "baseline": baseline}
        # which does not ask who wrote the answers
        raw["settings"]["objective"] = "reinforce"
        reason = run_round(Job.parse(raw), TorchBackend(), lambda event: None).reason
        made = read_adapter(output / name)
        return reason, {path: made.scale * b @ a for path, (a, b) in made.pairs.items()}

    round_("first", "", 0.0)
    rounds = (round_("on top", "first", 0.0), round_("afresh", "first", 0.95), round_("plain", "", 0.0))
    return [reason for reason, _ in rounds], [effects for _, effects in rounds]


def far(one: Effects, other: Effects) -> float:
    return max(float(np.abs(one[path] - other[path]).max()) for path in one)


def test_the_round_is_the_one_that_the_base_would_have_had(random_model: Path, tmp_path: Path) -> None:
    told, made = afresh_and_plain(random_model, tmp_path)
    on_top, afresh, plain = made
    assert "starts from the base" not in told[0]
    assert told[1].startswith("The newest version's answers were liked less")
    assert "usual way" not in told[0] + told[1]
    assert far(afresh, plain) < far(on_top, plain)
    assert far(afresh, plain) < 1e-6
