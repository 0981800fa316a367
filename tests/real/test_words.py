# SPDX-License-Identifier: Apache-2.0
"""What words say of single tokens, on a real model: a request against line breaks speaks against those.

On 24 answers of this model "Answer in one paragraph, without any line breaks or lists." moved tokens with a
line break by -0.53 nats and others by -0.10, and a remark about the weather by -0.04 and -0.09. The figures
of these twelve answers: -0.65 and -0.14; "Too long" -0.70 and -0.18; a reason in somebody's own words -0.43
and -0.10 (in quotation marks behind "got the comment" -0.12 and -0.09); the weather -0.01 and -0.07. A
remark moves single tokens nearly as far as a request does (0.22 nats against 0.28): but none of a kind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.hindsight import hindsight
from goodbot.api.sampler import SampleRequest
from goodbot_training.job.rated import Said
from goodbot_training.job.types import Job
from goodbot_training.round.hindsight import teach
from goodbot_training.round.rollouts import build_rollouts

from tests.support import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

QUESTIONS = (
    "How do I make tea?",
    "What should I pack for a hike?",
    "How do I clean a window?",
    "Give me tips to sleep well.",
    "How do I learn to cook?",
    "What are the parts of a plant?",
    "How do I plan a birthday party?",
    "Why is exercise good?",
    "How can I save money?",
    "What do I need to paint a room?",
    "How do I care for a cat?",
    "What are good breakfasts?",
)
"""Of which most are answered with a list."""
SKIP = 2


@pytest.fixture(scope="module")
def answered(real_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Job, list[Any]]:
    """The model, a job of its own answers, and which of their tokens hold a line break."""
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    backend = TorchBackend()
    backend.load(real_model, lora=LoraSettings(rank=4, alpha=8.0), seed=0)
    asked = [[{"role": "user", "content": question}] for question in QUESTIONS]
    requests = [
        SampleRequest(messages=messages, max_tokens=80, temperature=0.8, seed=n)
        for n, messages in enumerate(asked)
    ]
    made = backend.sampler().sample_many(requests)
    items = [
        {
            "id": str(n),
            "messages": asked[n],
            "prompt_tokens": list(one.prompt),
            "tokens": list(one.tokens),
            "logprobs": list(one.logprobs),
            "temperature": 0.8,
            "version": 0,
            "reward": -1.0,
        }
        for n, one in enumerate(made)
    ]
    job = Job.parse(
        {
            "protocol": 1,
            "model": str(real_model),
            "output": str(tmp_path_factory.mktemp("out")),
            "items": items,
            "settings": {"hindsight_clip": 50.0, "hindsight_skip": SKIP, "tokens_per_forward": 1024},
        }
    )
    tokenizer = require("transformers").AutoTokenizer.from_pretrained(real_model)
    breaks = [np.array(["\n" in tokenizer.decode([token]) for token in one.tokens]) for one in made]
    return backend, job, breaks


def moved(answered: tuple[Any, Job, list[Any]], words: str) -> tuple[float, float]:
    """By how many nats the words move tokens with a line break, and the others."""
    backend, job, breaks = answered
    job = replace(
        job, items=tuple(replace(item, hindsight=(Said(text=words, weight=1.0),)) for item in job.items)
    )
    rollouts, _ = build_rollouts(job, backend)
    found = teach(job, backend, rollouts)
    assert len(found) == len(QUESTIONS)
    said = np.concatenate([found[str(n)][SKIP:] for n in range(len(QUESTIONS))])
    broken = np.concatenate([one[SKIP:] for one in breaks])
    assert broken.sum() >= 8, "most of the questions are answered with a list"
    return float(said[broken].mean()), float(said[~broken].mean())


@pytest.mark.parametrize(
    "words",
    [
        "Answer in one paragraph, without any line breaks or lists.",
        hindsight(chips=["long"]),
        hindsight(reasons=["no lists and no line breaks please, one paragraph"]),
    ],
)
def test_words_against_line_breaks_speak_against_their_tokens(answered: Any, words: str) -> None:
    broken, others = moved(answered, words)
    assert broken < others - 0.15
    assert broken < -0.25


def test_words_about_something_else_speak_of_no_kind_of_token(answered: Any) -> None:
    broken, others = moved(answered, hindsight(reasons=["Thanks. By the way, the weather is nice today."]))
    assert abs(broken - others) < 0.15
    assert abs(others) < 0.15
