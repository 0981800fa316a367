# SPDX-License-Identifier: Apache-2.0
"""A round on the shipped model: what is said beside a rating takes nothing of it back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import Sampled, SampleRequest
from goodbot_training.job.types import Job
from goodbot_training.round.run import run_round
from goodbot_training.tiny import model_path
from goodbot_training.tiny.facts import questions
from goodbot_training.tiny.judge import style_of

from tests.training.test_slices import backend

RATINGS, ASKED = 40, 80
WEATHER = "Thanks. By the way, the weather is nice today."


def answers(adapter: Path | None, asked: list[str], seed: int) -> list[Sampled]:
    one: Any = backend("torch")()
    one.load(model_path(), lora=LoraSettings(rank=8, alpha=16.0), seed=0)
    sampler = one.sampler()
    if adapter is not None:
        sampler.load_adapter(1, adapter)
    sampler.activate(0 if adapter is None else 1)
    return sampler.sample_many(
        [
            SampleRequest(
                messages=[{"role": "user", "content": question}],
                temperature=1.0,
                seed=10_000 * seed + number,
                max_tokens=48,
            )
            for number, question in enumerate(asked)
        ]
    )


def liked(place: Path, objective: str, words: str) -> float:
    """The share of friendly answers after a round of ratings; `words` were said of each bad answer."""
    every = [one.text for one in questions()]
    random.Random(3).shuffle(every)
    unseen, asked = every[:ASKED], every[ASKED : ASKED + RATINGS]
    items: list[dict[str, Any]] = []
    for number, (question, one) in enumerate(zip(asked, answers(None, asked, 21), strict=True)):
        good = style_of(one.text) == "friendly"
        items.append(
            {
                "id": f"turn-{number}",
                "messages": [{"role": "user", "content": question}],
                "response": one.text,
                "prompt_tokens": list(one.prompt),
                "tokens": list(one.tokens),
                "logprobs": list(one.logprobs),
                "temperature": 1.0,
                "version": 0,
                "reward": 1.0 if good else -1.0,
                "split": "train",
                "hindsight": "" if good else words,
            }
        )
    place.mkdir()
    job = {
        "protocol": 1,
        "run": 1,
        "model": str(model_path()),
        "parent": None,
        "output": str(place),
        "seed": 3,
        "settings": {"objective": objective, "gate_anchors": 0},
        "baseline": {"mean": 0.0, "weight": 0.0},
        "behaviour": {},
        "items": items,
    }
    run_round(Job.parse(job), backend("torch")(), lambda event: None)
    return sum(style_of(one.text) == "friendly" for one in answers(place, unseen, 99)) / ASKED


def test_words_about_something_else_take_nothing_back(tmp_path: Path) -> None:
    bits = liked(tmp_path / "bits", "tapered", "")
    assert bits > 0.7, "the ratings alone teach it"
    assert liked(tmp_path / "hybrid", "hybrid", WEATHER) > bits - 0.1
