# SPDX-License-Identifier: Apache-2.0
"""What answers are drawn with: what the model's makers say, what the config says, and where nobody does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.base import sampling
from goodbot.base.errors import ConfigError
from goodbot.base.sampling import Filters
from goodbot.config import parse
from goodbot_training.tiny import model_path

BY_DEFAULT = (0.7, Filters(top_p=0.9))


def drawn(home: Path, told: Any, config: str = "") -> sampling.Sampling:
    if told is not None:
        text = told if isinstance(told, str) else json.dumps(told)
        (home / "generation_config.json").write_text(text)
    return sampling.of(home, parse(config, home=home).serving.drawn_with)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, BY_DEFAULT),
        ({"eos_token_id": 2}, BY_DEFAULT),
        ([], BY_DEFAULT),
        # Llama 3, Qwen 2.5, Gemma 3, a base model of old, and ours
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, (0.6, Filters(top_p=0.9))),
        (
            {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05},
            (0.7, Filters(top_k=20, top_p=0.8, repetition_penalty=1.05)),
        ),
        ({"do_sample": True, "top_k": 64, "top_p": 0.95}, (1.0, Filters(top_k=64, top_p=0.95))),
        ({"temperature": 0.8, "top_k": 0, "top_p": 1.0}, (0.8, Filters())),
        ({"temperature": 0.3}, (0.3, Filters(top_p=0.9))),
        ({"temperature": None, "top_p": None}, BY_DEFAULT),
        ({"top_k": -1, "min_p": 0.1}, (1.0, Filters(min_p=0.1))),
    ],
)
def test_it_is_as_the_model_s_makers_say(tmp_path: Path, told: Any, expected: Any) -> None:
    found = drawn(tmp_path, told)
    assert (found.temperature, found.filters) == expected


def test_the_shipped_model_is_drawn_from_whole() -> None:
    found = sampling.of(model_path(), {})
    assert (found.temperature, found.filters) == (0.8, Filters())
    assert str(found) == "as the model's makers say: T 0.8"


@pytest.mark.parametrize("told", [{"do_sample": False}, {"do_sample": False, "temperature": 0.2}])
def test_a_model_that_is_said_to_be_greedy_varies_all_the_same(tmp_path: Path, told: Any) -> None:
    found = drawn(tmp_path, told)
    assert (found.temperature, found.filters) == BY_DEFAULT
    [note] = found.notes
    assert "without any randomness the bot cannot learn" in note
    assert drawn(tmp_path, told, "[serving.sampling]\ntemperature = 0.4").notes == ()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"temperature": 0}, "temperature 0, which is not taken: temperature must be above 0: without"),
        ({"temperature": "hot"}, 'temperature "hot", which is not taken'),
        ({"top_p": 3}, "top_p 3, which is not taken: top_p must be above 0 and at most 1"),
        ({"top_k": 2.5}, "top_k must be a whole number"),
        ({"min_p": True}, "min_p must be 0 (off) or a share below 1"),
        ({"repetition_penalty": -1}, "repetition_penalty must be above 0; 1 is none"),
        ({"temperature": 1e400}, "temperature Infinity, which is not taken"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_its_files_say_wrongly_is_told_and_left_out(tmp_path: Path, told: Any, words: str) -> None:
    found = drawn(tmp_path, told)
    assert (found.temperature, found.filters) == BY_DEFAULT
    [note] = found.notes
    assert words in note


def test_the_config_overrides_each(tmp_path: Path) -> None:
    told = {"temperature": 0.6, "top_p": 0.9, "top_k": 20}
    found = drawn(tmp_path, told, "[serving.sampling]\ntop_k = 0\nmin_p = 0.05")
    assert (found.temperature, found.filters) == (0.6, Filters(top_p=0.9, min_p=0.05))
    assert str(found) == (
        "as the model's makers say, but for [serving.sampling]: T 0.6, top_p 0.9, min_p 0.05"
    )
    old = drawn(tmp_path, told, "[serving]\ntemperature = 1.1")
    assert (old.temperature, old.filters.top_k) == (1.1, 20)
    whole = drawn(tmp_path, {}, "[serving.sampling]\ntop_p = 1")
    assert (whole.temperature, whole.filters) == (0.7, Filters())


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("temperature = 0", "temperature must be above 0: without any randomness the bot cannot learn"),
        ("temperature = nan", "temperature must be above 0"),
        ("temperature = inf", "temperature must be above 0"),
        ("top_p = 0", "top_p must be above 0 and at most 1"),
        ("top_p = 1.1", "top_p must be above 0 and at most 1"),
        ("top_k = -2", "top_k must be a whole number, 0 for all tokens"),
        ("top_k = 2.5", "top_k must be a whole number"),
        ("min_p = 1", "min_p must be 0"),
        ("repetition_penalty = 0", "repetition_penalty must be above 0"),
        ("topp = 0.9", "unknown key 'topp'"),
        ('top_p = "0.9"', "top_p must be a number"),
    ],
)
def test_a_wrong_value_gets_a_sentence_with_its_line(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match=r".") as error:
        parse(f"[serving.sampling]\n{lines}\n", home=tmp_path, path=path)
    assert words in str(error.value)
    assert "config.toml:2" in str(error.value) or error.value.line == 2


def test_two_temperatures_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"stands in \[serving\] too"):
        parse("[serving]\ntemperature = 1\n[serving.sampling]\ntemperature = 1", home=tmp_path)
    with pytest.raises(ConfigError, match="sampling must be a section"):
        parse("[serving]\nsampling = 1", home=tmp_path)
