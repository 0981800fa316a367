# SPDX-License-Identifier: Apache-2.0
"""One learning trial: the shipped model, a noisy simulated rater, one round, a noiseless judge."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.sampler import Sampled, Sampler, SampleRequest
from goodbot_training.job.types import Job
from goodbot_training.round.run import run_round
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater
from goodbot_training.tiny.score import Score, score

RATINGS = 40
HELD_OUT = 8
RATER_ERROR = 0.1
MAX_TOKENS = 48


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one round did, judged on questions whose facts were never asked in training."""

    seed: int
    like: str
    deal: int
    """0: the true ratings; else a number of a random deal of the same ones."""
    before: Score
    after: Score
    passed: bool
    reason: str
    cpu_seconds: float

    @property
    def liked_gain(self) -> float:
        """Points, in [-1, 1]."""
        return self.after.liked_share - self.before.liked_share

    @property
    def facts_change(self) -> float:
        """Points, in [-1, 1]; negative is a loss."""
        return self.after.facts - self.before.facts


def run_trial(
    backend: TrainingBackend,
    *,
    seed: int,
    like: str,
    deal: int = 0,
    answers: int = 480,
    settings: dict[str, Any] | None = None,
) -> Trial:
    """Sample 40 answers, rate them, train one round on 32, judge `answers` held-out answers.

    `deal` above 0 deals the same ratings out at random: the control, which must not learn the style.
    The candidate is judged whether or not the gate let it through.
    """
    train, held_out = split(seed)
    asked = Random(seed).sample(train, RATINGS)
    exam = [held_out[index % len(held_out)] for index in range(answers)]
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory)
        _load(backend, seed)
        rollouts = _sample(backend.sampler(), asked, seed=1000 * (seed + 1))
        before = _sample(backend.sampler(), exam, seed=500_000 * (seed + 1))
        rater = SimulatedRater(like, RATER_ERROR, seed)
        ratings = [rater.rate(q.text, a.text) for q, a in zip(asked, rollouts, strict=True)]
        if deal:
            Random(100 * seed + deal).shuffle(ratings)
        job = _job(asked, rollouts, ratings, seed, output, settings or {})
        events: list[dict[str, Any]] = []
        began = time.process_time()
        verdict = run_round(job, backend, events.append)
        cpu_seconds = time.process_time() - began
        sampler = backend.sampler()
        sampler.load_adapter(1, output)
        sampler.activate(1)
        after = _sample(sampler, exam, seed=500_000 * (seed + 1))
    return Trial(
        seed=seed,
        like=like,
        deal=deal,
        before=score(exam, [answer.text for answer in before], like),
        after=score(exam, [answer.text for answer in after], like),
        passed=verdict.passed,
        reason=verdict.reason,
        cpu_seconds=cpu_seconds,
    )


def _load(backend: TrainingBackend, seed: int) -> None:
    backend.load(model_path(), lora=LoraSettings(), seed=seed)


def _sample(sampler: Sampler, questions: Sequence[FactQuestion], *, seed: int) -> list[Sampled]:
    return list(
        sampler.sample_many(
            [
                SampleRequest(
                    messages=[{"role": "user", "content": question.text}],
                    max_tokens=MAX_TOKENS,
                    temperature=TEMPERATURE,
                    seed=seed + index,
                )
                for index, question in enumerate(questions)
            ]
        )
    )


def _job(
    asked: Sequence[FactQuestion],
    rollouts: Sequence[Sampled],
    ratings: Sequence[int],
    seed: int,
    output: Path,
    settings: dict[str, Any],
) -> Job:
    every = RATINGS // HELD_OUT
    items = [
        {
            "id": f"turn-{index:03d}",
            "messages": [{"role": "user", "content": question.text}],
            "response": answer.text,
            "prompt_tokens": list(answer.prompt),
            "tokens": list(answer.tokens),
            "logprobs": list(answer.logprobs),
            "temperature": TEMPERATURE,
            "version": 0,
            "reward": float(rating),
            "weight": 1.0,
            "split": "held_out" if index % every == every - 1 else "train",
        }
        for index, (question, answer, rating) in enumerate(zip(asked, rollouts, ratings, strict=True))
    ]
    return Job.parse(
        {
            "protocol": 1,
            "run": 1,
            "model": str(model_path()),
            "parent": None,
            "output": str(output),
            "seed": seed,
            "settings": settings,
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {},
            "items": items,
            "anchors": [item["messages"] for item in items],
        }
    )
