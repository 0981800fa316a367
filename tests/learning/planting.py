# SPDX-License-Identifier: Apache-2.0
"""How a planted adapter is made, put before the gate, and judged."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from goodbot.api.backend import LoraSettings, TrainingBackend
from goodbot.api.sampler import Sampled, SampleRequest
from goodbot_training.backends.scoring import score
from goodbot_training.gate import Verdict, decide, measure
from goodbot_training.job.types import HELD_OUT, Job
from goodbot_training.round import run as training_round
from goodbot_training.round.rollouts import build_rollouts
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater, is_correct, style_of

RATINGS, HELD_OUT_EVERY = 40, 5
RATER_ERROR = 0.1
MAX_TOKENS = 48
HARM = 0.05
"""Points of facts, or of well-formed answers, whose loss makes a candidate harmful."""
HARMLESS = 0.03
"""Points that a good one may lose, about twice the standard error of the exam."""
EXAM = 320


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the judge says of one policy, shares in [0, 1]."""

    facts: float
    formed: float
    liked: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """One planted adapter: what the judge says of it, and what the gate does."""

    kind: str
    seed: int
    like: str
    before: Judged
    after: Judged | None
    """None: it cannot even be loaded."""
    verdict: Verdict
    gate_seconds: float
    """CPU-seconds of the gate alone; 0 where they were not told apart."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Case:
        raw = json.loads(text)
        raw["before"], raw["verdict"] = Judged(**raw["before"]), Verdict(**raw["verdict"])
        raw["after"] = Judged(**raw["after"]) if raw["after"] else None
        return cls(**raw)

    @property
    def harmful(self) -> bool:
        return self.after is None or self.lost >= HARM

    @property
    def good(self) -> bool:
        if self.after is None:
            return False
        return self.lost <= HARMLESS and self.after.liked >= self.before.liked

    @property
    def lost(self) -> float:
        """Points of facts or of well-formed answers, whichever is more."""
        after = self.after or Judged(facts=0.0, formed=0.0, liked=0.0)
        return max(self.before.facts - after.facts, self.before.formed - after.formed)


class Bench:
    """A backend, a directory, and the ways to sample, rate, train, gate and judge."""

    def __init__(self, backend: TrainingBackend, directory: Path, exam: int = EXAM) -> None:
        self.backend = backend
        self.directory = directory
        self._exam = exam
        self._base: dict[tuple[int, str], Judged] = {}
        self._numbers = count()

    def place(self) -> Path:
        """A new, empty directory."""
        place = self.directory / f"{next(self._numbers):04d}"
        place.mkdir()
        return place

    def job(
        self,
        seed: int,
        like: str,
        *,
        number: int = 0,
        parent: Path | None = None,
        baseline: dict[str, float] | None = None,
        model: Path | None = None,
        only_bad: bool = False,
        dealt: bool = False,
        captured: bool = True,
        **settings: Any,
    ) -> Job:
        """Forty answers of the policy, rated by somebody who likes one style, as a round's job."""
        train, _ = split(seed)
        asked = Random(1000 * seed + number).sample(train, (3 if only_bad else 1) * RATINGS)
        drawn = self._sample(asked, parent, 1000 * (seed + 1) + 10_000 * number)
        rater = SimulatedRater(like, RATER_ERROR, 100 * seed + number)
        pairs = list(zip(asked, drawn, strict=True))
        if only_bad:
            rated = [(q, a, -1) for q, a in pairs if style_of(a.text) != like][:RATINGS]
        else:
            rated = [(q, a, rater.rate(q.text, a.text)) for q, a in pairs[:RATINGS]]
        if dealt:
            ratings = [rating for _, _, rating in rated]
            Random(100 * seed + number).shuffle(ratings)
            rated = [(q, a, rating) for (q, a, _), rating in zip(rated, ratings, strict=True)]
        items = [
            {
                "id": f"turn-{index:03d}",
                "messages": [{"role": "user", "content": question.text}],
                "response": answer.text,
                "prompt_tokens": list(answer.prompt) if captured else [],
                "tokens": list(answer.tokens) if captured else [],
                "logprobs": list(answer.logprobs) if captured else [],
                "temperature": TEMPERATURE,
                "version": 0,
                "reward": float(rating),
                "weight": 1.0,
                "split": "held_out" if index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else "train",
            }
            for index, (question, answer, rating) in enumerate(rated)
        ]
        return Job.parse(
            {
                "protocol": 1,
                "model": str(model or model_path()),
                "output": str(self.place()),
                "parent": str(parent) if parent else None,
                "seed": 1000 * seed + number,
                "settings": {"gate_retry": 0.0, **settings},
                "baseline": baseline or {},
                "items": items,
                "anchors": [item["messages"] for item in items],
            }
        )

    def train(self, job: Job) -> tuple[Verdict, dict[str, Any]]:
        """One whole round, gate included; the candidate lies in the job's output."""
        events: list[dict[str, Any]] = []
        verdict = training_round.run_round(job, self.backend, events.append)
        return verdict, events[-1]["baseline"]

    def gate(self, job: Job, candidate: Path) -> Verdict:
        """The gate alone, over an adapter that came from elsewhere, on the base of `job`."""
        settings = job.settings
        self._load()
        rollouts, _ = build_rollouts(job, self.backend)
        held_out = [rollout for rollout in rollouts if rollout.split == HELD_OUT]
        before = score(
            self.backend,
            [r.turn for r in held_out],
            [r.temperature for r in held_out],
            adapter=True,
            budget=settings.tokens_per_forward,
        )
        metrics = measure(
            job, self.backend, candidate, held_out=held_out, parent_logprobs=before, temperature=TEMPERATURE
        )
        return decide(metrics, settings)

    def case(
        self,
        kind: str,
        seed: int,
        like: str,
        candidate: Path,
        verdict: Verdict,
        gate_seconds: float = 0.0,
        *,
        loads: bool = True,
    ) -> Case:
        """The candidate as the judge sees it beside the base."""
        if (seed, like) not in self._base:
            self._base[seed, like] = self._judge(seed, like, None)
        return Case(
            kind=kind,
            seed=seed,
            like=like,
            verdict=verdict,
            gate_seconds=gate_seconds,
            before=self._base[seed, like],
            after=self._judge(seed, like, candidate) if loads else None,
        )

    def _judge(self, seed: int, like: str, adapter: Path | None) -> Judged:
        _, held_out = split(seed)
        exam = [held_out[index % len(held_out)] for index in range(self._exam)]
        texts = [answer.text for answer in self._sample(exam, adapter, 500_000 * (seed + 1))]
        styles = [style_of(text) for text in texts]
        return Judged(
            facts=fmean(is_correct(q, text) for q, text in zip(exam, texts, strict=True)),
            formed=fmean(style is not None for style in styles),
            liked=fmean(style == like for style in styles),
        )

    def _load(self) -> None:
        self.backend.load(model_path(), lora=LoraSettings(), seed=0)

    def _sample(self, questions: Sequence[FactQuestion], adapter: Path | None, seed: int) -> list[Sampled]:
        self._load()
        sampler = self.backend.sampler()
        if adapter is not None:
            sampler.load_adapter(1, adapter)
        sampler.activate(0 if adapter is None else 1)
        requests = [
            SampleRequest(
                messages=[{"role": "user", "content": question.text}],
                max_tokens=MAX_TOKENS,
                temperature=TEMPERATURE,
                seed=seed + index,
            )
            for index, question in enumerate(questions)
        ]
        return sampler.sample_many(requests)


@contextmanager
def bench(exam: int = EXAM) -> Generator[Bench]:
    """On torch, in a directory that is gone afterwards."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    with tempfile.TemporaryDirectory() as directory:
        yield Bench(TorchBackend(), Path(directory), exam)
