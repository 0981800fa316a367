"""One course: an arm learns from a stream, round after round, with the gate on; judged each time.

A candidate that the gate refuses is judged too, but the next round goes on without it, as it
would in the daemon.
"""

from __future__ import annotations

import functools
import json
import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any
from unittest.mock import patch

import numpy as np
from goodbot.backend import LoraSettings, Sampled, Sampler, SampleRequest, TrainingBackend
from goodbot_training import round as training_round
from goodbot_training.mispo import detach
from goodbot_training.objectives import Objective, make_objective
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import Question
from goodbot_training.tiny.judge import style_of
from goodbot_training.tiny.score import score
from goodbot_training.types import Job
from safetensors.numpy import load_file, save_file

from tests.learning.arms import ARMS, Arm
from tests.learning.streams import RATINGS, STREAMS, Rated

HELD_OUT_EVERY = 5
"""Every fifth rating is kept for the gate: 32 train, 8 are held out."""
MAX_TOKENS = 48
OTHER = {"terse": "friendly", "friendly": "terse", "pirate": "terse"}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the judge says of one policy, shares in [0, 1] and mean tokens an answer."""

    liked: float
    facts: float
    malformed: float
    length: float


@dataclass(frozen=True, kw_only=True)
class Course:
    """One arm on one stream. Lists have an entry a round."""

    arm: str
    stream: str
    like: str
    seed: int
    answers: int
    before: Judged
    live: list[Judged]
    """What answers after each round: the candidate, or what was there if the gate refused it."""
    candidate: list[Judged]
    passed: list[bool]
    drift: list[float]
    """Nats a token from the base, by the gate's estimate; NaN where it took none."""
    token_acceptance: list[float]
    trajectory_acceptance: list[float]
    cpu_seconds: float
    """Of the rounds, gates included."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Course:
        raw = json.loads(text)
        raw["before"] = Judged(**raw["before"])
        for name in ("live", "candidate"):
            raw[name] = [Judged(**entry) for entry in raw[name]]
        return cls(**raw)


def take(
    backend: TrainingBackend, *, arm: str, stream: str, like: str, seed: int, answers: int
) -> Course:
    """Run one course. Everything is drawn by `seed`: two arms see the same questions."""
    how, what = ARMS[arm], STREAMS[stream]
    train, held_out = split(seed)
    exam = [held_out[index % len(held_out)] for index in range(answers)]
    judged_style = OTHER[like] if what.flips else like
    base = list(_base_answers(type(backend), seed, answers))
    before = _judge(exam, base, judged_style)
    course = Course(
        arm=arm, stream=stream, like=like, seed=seed, answers=answers, before=before, live=[],
        candidate=[], passed=[], drift=[], token_acceptance=[], trajectory_acceptance=[],
        cpu_seconds=0.0,
    )  # fmt: skip
    cpu = 0.0
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(_loss(how))
        writer = _writer(how, backend, directory, like, seed)
        parent: Path | None = None
        baseline = {"mean": 0.0, "weight": 0.0}
        live = before
        for number in range(what.rounds):
            if arm == "frozen":
                course.live.append(before)
                continue
            liked = judged_style if what.flips and number else like
            asked = _ask(train, what.asked, seed, number)
            drawn = _written(backend, asked, writer, parent, 1000 * (seed + 1) + 10_000 * number)
            rated = what.rate(asked, drawn, liked, number, seed)
            if how.shuffled:
                rated = _dealt(rated, seed, number)
            output = directory / f"round-{number}"
            output.mkdir()
            job = _job(rated, seed, number, parent, baseline, output, how)
            events: list[dict[str, Any]] = []
            began = time.process_time()
            verdict = training_round.run_round(job, backend, events.append)
            cpu += time.process_time() - began
            candidate = _judge(exam, _exam(backend, exam, output, seed), judged_style)
            done = events[-1]
            course.candidate.append(candidate)
            course.passed.append(verdict.passed)
            course.drift.append(verdict.metrics.get("drift", math.nan))
            course.token_acceptance.append(done["metrics"].get("token_acceptance", math.nan))
            course.trajectory_acceptance.append(
                done["metrics"].get("trajectory_acceptance", math.nan)
            )
            if verdict.passed:
                parent, baseline, live = output, done["baseline"], candidate
            course.live.append(live)
    return Course(**{**vars(course), "cpu_seconds": cpu})


def _ask(train: Sequence[Question], count: int, seed: int, number: int) -> list[Question]:
    return (
        Random(1000 * seed + number).choices(train, k=count)
        if count > len(train)
        else Random(1000 * seed + number).sample(train, count)
    )


def _dealt(rated: Sequence[Rated], seed: int, number: int) -> list[Rated]:
    ratings = [rating for _, _, rating in rated]
    Random(100 * seed + number + 1).shuffle(ratings)
    return [(q, a, rating) for (q, a, _), rating in zip(rated, ratings, strict=True)]


def _judge(exam: Sequence[Question], answers: Sequence[Sampled], like: str) -> Judged:
    texts = [answer.text for answer in answers]
    result = score(exam, texts, like)
    return Judged(
        liked=result.liked_share,
        facts=result.facts,
        malformed=fmean(style_of(text) is None for text in texts),
        length=fmean(len(answer.tokens) for answer in answers),
    )


@functools.lru_cache(maxsize=8)
def _base_answers(kind: type[TrainingBackend], seed: int, answers: int) -> tuple[Sampled, ...]:
    """The base's exam, the same for every arm."""
    _, held_out = split(seed)
    exam = [held_out[index % len(held_out)] for index in range(answers)]
    backend = kind()
    backend.load(model_path(), lora=LoraSettings(), seed=seed)
    return tuple(_sample(backend.sampler(), exam, 500_000 * (seed + 1)))


def _exam(
    backend: TrainingBackend, exam: Sequence[Question], adapter: Path, seed: int
) -> list[Sampled]:
    sampler = backend.sampler()
    sampler.load_adapter(1, adapter)
    sampler.activate(1)
    return _sample(sampler, exam, 500_000 * (seed + 1))


def _sample(sampler: Sampler, questions: Sequence[Question], seed: int) -> list[Sampled]:
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


@dataclass(frozen=True, kw_only=True)
class _Writer:
    """Who writes the answers that are rated: a model, with an adapter or without."""

    model: Path
    adapter: Path | None = None
    fixed: bool = False
    """Always this one, not the policy that is trained."""


def _writer(arm: Arm, backend: TrainingBackend, directory: Path, like: str, seed: int) -> _Writer:
    if arm.writer == "4-bit":
        return _Writer(model=quantized(directory / "4-bit"), fixed=True)
    if arm.writer == "stale":  # trained on other people's ratings of the same taste
        old = directory / "older"
        old.mkdir()
        train, _ = split(seed)
        asked = _ask(train, RATINGS, seed + 1000, 0)
        drawn = _written(backend, asked, _Writer(model=model_path()), None, 77_000 * (seed + 1))
        rated = STREAMS["natural"].rate(asked, drawn, like, 0, seed + 1000)
        baseline = {"mean": 0.0, "weight": 0.0}
        job = _job(rated, seed + 1000, 0, None, baseline, old, ARMS["scale"])
        training_round.run_round(job, backend, lambda event: None)
        return _Writer(model=model_path(), adapter=old, fixed=True)
    return _Writer(model=model_path())


def _written(
    backend: TrainingBackend,
    asked: Sequence[Question],
    writer: _Writer,
    parent: Path | None,
    seed: int,
) -> list[Sampled]:
    backend.load(writer.model, lora=LoraSettings(), seed=0)
    sampler = backend.sampler()
    adapter = writer.adapter if writer.fixed else parent
    if adapter is not None:
        sampler.load_adapter(1, adapter)
        sampler.activate(1)
    return _sample(sampler, asked, seed)


def quantized(directory: Path, bits: int = 4, group: int = 32) -> Path:
    """A copy of the tiny model whose linear weights went through so many bits and back.

    Round to nearest over groups of 32 with a scale and an offset each, as affine quantizers do.
    """
    directory.mkdir()
    for entry in model_path().iterdir():
        if entry.is_file() and entry.suffix != ".safetensors":
            shutil.copy(entry, directory)
    tensors = load_file(model_path() / "model.safetensors")
    for name, tensor in tensors.items():
        if name.endswith("_proj.weight"):
            groups = tensor.astype(np.float32).reshape(-1, group)
            low, high = groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)
            step = np.maximum(high - low, 1e-8) / (2**bits - 1)
            back = np.round((groups - low) / step) * step + low
            tensors[name] = back.reshape(tensor.shape).astype(tensor.dtype)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def _job(
    rated: Sequence[Rated], seed: int, number: int, parent: Path | None,
    baseline: dict[str, float], output: Path, arm: Arm,
) -> Job:  # fmt: skip
    items = [
        {
            "id": f"turn-{number:02d}-{index:03d}",
            "messages": [{"role": "user", "content": question.text}],
            "response": answer.text, "prompt_tokens": list(answer.prompt),
            "tokens": list(answer.tokens), "logprobs": list(answer.logprobs),
            "temperature": TEMPERATURE, "version": 0, "reward": float(rating), "weight": 1.0,
            "split": "held_out" if index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train",
        }
        for index, (question, answer, rating) in enumerate(rated)
    ]  # fmt: skip
    return Job.parse(
        {
            "protocol": 1, "run": number + 1, "model": str(model_path()),
            "parent": str(parent) if parent else None, "output": str(output),
            "seed": 1000 * seed + number, "settings": dict(arm.settings), "baseline": baseline,
            "behaviour": {}, "items": items, "anchors": [item["messages"] for item in items],
        }
    )  # fmt: skip


@contextmanager
def _loss(arm: Arm) -> Iterator[None]:
    """With an arm that brings its own loss, train with that one."""
    if arm.loss != "reinforceclaw":
        yield
        return

    def made(settings: Any) -> Objective:
        return Objective(reinforceclaw, standardized_like_reinforceclaw(make_objective(settings)))

    with patch.object(training_round, "make_objective", made):
        yield


def standardized_like_reinforceclaw(ours: Objective) -> Any:
    """r - EMA, positives times 1.2; standardised where both signs are there; clipped to ±2."""

    def advantages(baseline: Any, rewards: Any, weights: Any) -> Any:
        _, after = ours.advantages(baseline, rewards, weights)
        mean = baseline.mean if baseline.weight else rewards[0]
        raw = np.array([(r - mean) * (1.2 if r > 0 else 1.0) for r in rewards])
        if raw.min() < 0 < raw.max():
            raw = (raw - raw.mean()) / (raw.std(ddof=1) + 1e-8)
        return np.clip(raw, -2, 2).tolist(), after

    return advantages


def reinforceclaw(
    xp: Any, policy_logprobs: Any, sampling_logprobs: Any, reference_logprobs: Any,
    advantages: Any, mask: Any, normalizer: float,
) -> Any:  # fmt: skip
    """The published loss: PPO's minimum, a trajectory scale against the base that is not detached,
    a mean over each answer's own tokens, k3 with .001."""
    lengths = xp.clip(mask.sum(axis=1), 1.0, None)
    ratio = xp.exp((policy_logprobs - sampling_logprobs) * mask)
    a = advantages[:, None]
    least = xp.minimum(ratio * a, xp.clip(ratio, 0.5, 2.0) * a)
    actor = -(least * mask).sum(axis=1) / lengths
    trajectory = xp.exp(((policy_logprobs - reference_logprobs) * mask).sum(axis=1) / lengths)
    scale = xp.minimum(xp.minimum(trajectory / 0.994, 1.002 / trajectory), xp.ones_like(trajectory))
    d = (reference_logprobs - policy_logprobs) * mask
    k3 = (xp.exp(d) - d - 1.0).sum(axis=1) / lengths
    loss = (actor * scale + 0.001 * k3).sum() / len(advantages)
    statistics = {
        "kl": (xp.exp(detach(xp, d)) - detach(xp, d) - 1.0).sum(),
        "tokens_accepted": mask.sum(),
        "trajectories_accepted": detach(xp, scale).sum(),
    }
    return loss, statistics
