# SPDX-License-Identifier: Apache-2.0
"""A job that is off is refused with one sentence that names the field."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot import config
from goodbot.base.errors import ConfigError, TrainingError
from goodbot_training.gate.measure import make_requests
from goodbot_training.job.types import Job, TrainingSettings
from goodbot_training.round import contested

from tests.training.factories import raw_item, raw_job


def test_a_good_job() -> None:
    tokens = {"prompt_tokens": [1, 2], "tokens": [3], "logprobs": [-0.5]}
    job = Job.parse(raw_job(items=[raw_item(), raw_item(1, **tokens)], settings={"steps": 5}))
    assert (job.run, job.seed, job.parent, str(job.behaviour[3])) == (7, 3, None, "v3")
    assert job.settings == TrainingSettings(steps=5)
    assert (job.baseline.mean, job.baseline.weight) == (0.25, 0.5)
    assert [item.captured for item in job.items] == [False, True]


def test_what_may_be_left_out() -> None:
    least = {"protocol": 1, "model": "m", "output": "o", "items": []}
    job = Job.parse(least)
    assert job.settings == TrainingSettings()
    assert job.baseline.weight == 0
    assert not job.anchors


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"protocol": 2}, "protocol"),
        ({"model": 5}, "model"),
        ({"output": ""}, "output"),
        ({"seed": 1.5}, "seed"),
        ({"items": {}}, "items"),
        ({"items": [5]}, "item"),
        ({"baseline": {"mean": float("inf")}}, "baseline.mean"),
        ({"behaviour": {"x": "y"}}, "behaviour"),
        ({"items": [{"id": ""}]}, "id"),
        ({"anchors": {}}, "anchor"),
    ],
)
def test_a_bad_job(changes: dict[str, Any], word: str) -> None:
    refused(raw_job(**changes), word)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"reward": float("nan")}, "reward"),
        ({"reward": None}, "reward"),
        ({"reward": True}, "reward"),
        ({"reward": 2}, "reward"),
        ({"weight": -1}, "weight"),
        ({"version": "3"}, "version"),
        ({"temperature": -1}, "temperature"),
        ({"split": "test"}, "split"),
        ({"messages": []}, "message"),
        ({"messages": [{"role": "user", "content": ["secret"]}]}, "content"),
        ({"response": None}, "response"),
        ({"tokens": ["a"]}, "token"),
        ({"tokens": [-1]}, "token"),
        ({"prompt_tokens": [1], "tokens": [1, 2], "logprobs": [-1]}, "differ"),
        ({"logprobs": [float("nan")]}, "logprobs"),
        ({"logprobs": [0.5]}, "above 0"),
    ],
)
def test_s5_a_bad_item_is_left_out_and_the_others_stay(changes: dict[str, Any], word: str) -> None:
    job = Job.parse(raw_job(items=[raw_item(), raw_item(1, **changes), raw_item(2)]))
    assert [item.id for item in job.items] == ["turn-0", "turn-2"]
    assert list(job.refused) == ["turn-1"]
    assert word in job.refused["turn-1"]
    assert "secret" not in job.refused["turn-1"]


def test_s5_an_anchor_that_is_no_conversation_is_not_asked() -> None:
    good = [{"role": "user", "content": "Hi"}]
    job = Job.parse(raw_job(anchors=[[], good, [{"role": 1, "content": "x"}], "x"]))
    assert [list(anchor) for anchor in job.anchors] == [good]


@pytest.mark.parametrize(
    "settings",
    [
        {"magic": 1},
        {"steps": "many"},
        {"steps": 0},
        {"steps": 1.5},
        {"learning_rate": 0},
        {"learning_rate": float("nan")},
        {"learning_rate_scale": 0},
        {"kl": -1},
        {"objective": 3},
        {"ema_decay": 1.0},
        {"token_low": 1.5},
        {"trajectory_high": 0.9},
        {"trajectory_low": "low"},
        {"gate_max_tokens": 0},
        {"gate_max_length_ratio": 0.5},
        {"gate_min_distinct": 3.0},
        {"gate_max_drift": -1.0},
        {"gate_max_anchor_loss": -1.0},
        {"trajectory_high": 0.0},
        {"trajectory_low": -1.0},
    ],
)
def test_a_bad_setting(settings: dict[str, Any]) -> None:
    refused(raw_job(settings=settings), next(iter(settings)).split("_")[0])


def test_the_learning_rate_is_the_sizes_own_unless_it_is_set() -> None:
    assert TrainingSettings().rate_for(10**6) == 3e-3
    assert TrainingSettings(learning_rate_scale=0.5).rate_for(10**6) == 1.5e-3
    assert TrainingSettings(learning_rate_scale=0.5, learning_rate=0.1).rate_for(10**6) == 0.1
    # where a real model was measured: tests/learning/results/real_rounds.md
    assert TrainingSettings().rate_for(106_168_320) == pytest.approx(3.56e-4, rel=0.05)


def test_an_optional_setting_may_be_null() -> None:
    assert TrainingSettings.from_mapping({"trajectory_low": None}).trajectory_low is None
    with pytest.raises(TrainingError):
        TrainingSettings.from_mapping({"kl": None})


def refused(raw: dict[str, Any], word: str) -> None:
    with pytest.raises(TrainingError) as caught:
        Job.parse(raw)
    assert caught.value.kind == "data"
    assert word in str(caught.value)
    assert "secret" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_setting_in_the_config_file_is_refused_with_its_own_line() -> None:
    text = "[training.settings]\nsteps = 5\nrank = 0\n"
    with pytest.raises(ConfigError, match=r"config\.toml:3: rank must be at least 1$"):
        config.parse(text, home=Path("/state"), path=Path("config.toml")).training_settings(TrainingSettings)


@pytest.mark.parametrize(("weight", "found"), [(0.0, ["turn-0"]), (0.5, ["turn-0", "turn-0+better"])])
def test_where_words_weigh_nothing_no_better_answer_trains(weight: float, found: list[str]) -> None:
    items = [raw_item(), raw_item(id="turn-0+better", demonstration=True)]
    job = Job.parse(raw_job(items=items, settings={"objective": "hybrid", "hindsight_weight": weight}))
    assert [item.id for item in job.items] == found


def test_what_was_written_in_an_answers_place_is_no_rated_answer() -> None:
    """Neither in what the gate asks with most answers' filters, nor among those that are outvoted."""
    filters = {"top_k": 3}
    items = [raw_item(0, filters=filters), raw_item(1, filters=filters), raw_item(2)]
    better = [raw_item(id=f"turn-{n}+better", weight=0.0, demonstration=True) for n in range(2)]
    job = Job.parse(raw_job(items=[*items, *better]))
    backend: Any = SimpleNamespace(tokenize=lambda messages, _: SimpleNamespace(prompt=(1, 2)))
    [request] = make_requests(job, backend, 1.0, 1)
    assert request.filters.told() == filters
    assert contested.unheard(job) == 0


def test_it_is_tried_as_the_bot_answers_whoever_elses_answers_were_rated() -> None:
    others = [raw_item(n, temperature=1.0) for n in range(21)]
    ours = [raw_item(n, temperature=0.7, filters={"top_p": 0.9}) for n in range(21, 40)]
    job = Job.parse(raw_job(items=[*others, *ours], sampling={"temperature": 0.7, "top_p": 0.9}))
    assert (job.temperature, job.filters.told(), job.usual) == (0.7, {"top_p": 0.9}, 1.0)
    whole = Job.parse(raw_job(items=ours, sampling={"temperature": 1.0}))
    assert (whole.temperature, whole.filters.told()) == (1.0, {}), "the whole distribution is told, too"
    frozen = Job.parse(raw_job(items=[raw_item(temperature=1e-6)], sampling={"temperature": 1e-6}))
    assert frozen.temperature == 1.0, "at that heat every gap of logits is beyond all bounds"
    untold = Job.parse(raw_job(items=[*others, *ours]))
    assert (untold.temperature, untold.filters.told()) == (1.0, {})


@pytest.mark.parametrize("told", [{"temperature": 0}, {"top_p": "all"}, {"min_p": float("nan")}, []])
def test_a_sampling_that_is_none_is_refused(told: object) -> None:
    with pytest.raises(TrainingError, match="sampling"):
        Job.parse(raw_job(sampling=told or [1]))
