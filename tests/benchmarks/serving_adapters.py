# SPDX-License-Identifier: Apache-2.0
"""Answers by many adapters at once, beside the same answers by one: in one process, without a daemon.

64 chats go on without a pause. Each question is for the next adapter, in turns; of 1,000 adapters by a draw
in which the first is asked most, the second half as often, and so on (Zipf's law). A step is a token for all.
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest
from goodbot_training.backends.adapters import fresh
from goodbot_training.backends.residency import StoredAdapter

COUNTS = (1, 25, 33, 64, 65, 129, 1000)
CHATS = 64
TOKENS = 32
RANK = 8
_DRAWN = 1000
"""Adapters from which on questions are drawn, and not in turns."""
_CLASSES = {"torch": "TorchBackend", "mlx": "MlxBackend"}
HEAD = (
    "backend",
    "adapters",
    "in a step",
    "tokens/CPU-s",
    "of one adapter's",
    "p50 of a step, CPU-ms (one adapter)",
    "p99 (one adapter)",
    "p99 is longer by",
)


@dataclass
class Round:
    """What was seen of one count."""

    tokens: list[float] = field(default_factory=list[float])
    """A processor second, by round."""
    steps: list[float] = field(default_factory=list[float])
    """Processor milliseconds."""
    together: list[int] = field(default_factory=list[int])
    """Adapters in a step."""


def sampler_of(name: str, model: Path) -> Any:
    """As the process that answers has it."""
    trainer = importlib.import_module(f"goodbot_training.backends.{name}.trainer")
    backend = getattr(trainer, _CLASSES[name])()
    backend.load(model, lora=LoraSettings(), seed=0)
    if hasattr(backend, "optimize_for_inference"):
        backend.optimize_for_inference()
    return backend.sampler()


def load(sampler: Any, count: int) -> None:
    """Versions 1 to `count`, of random weights on every projection."""
    shapes = sampler._model.shapes
    for version in range(1, count + 1):
        weights = fresh(shapes, rank=RANK, alpha=2.0 * RANK, seed=version)
        random = np.random.default_rng(version)
        for _, b in weights.pairs.values():
            b[:] = random.standard_normal(b.shape, np.float32) * 0.01
        sampler.keep_adapter(version, StoredAdapter(directory=Path("nowhere"), weights=weights))
    sampler.activate(0)


def versions(count: int, seed: int) -> Iterator[int]:
    """Who is asked, without an end."""
    if count < _DRAWN:
        return itertools.cycle(range(1, count + 1))
    weights = 1 / np.arange(1, count + 1)
    random = np.random.default_rng(seed)
    return iter(lambda: int(random.choice(count, p=weights / weights.sum())) + 1, 0)


def measure(sampler: Any, count: int, questions: int, seen: Round, seed: int) -> None:
    """One round of so many questions."""
    wanted, left = versions(count, seed), iter(range(questions))
    written = 0

    def ask() -> None:
        number = next(left, None)
        if number is not None:
            text = " ".join(["why", "salt", "river"][: 1 + number % 3])
            asked = [{"role": "user", "content": text}]
            request = SampleRequest(messages=asked, max_tokens=TOKENS, temperature=1.0, seed=number)
            sampler.start(number, request, next(wanted))

    began = time.process_time()
    for _ in range(CHATS):
        ask()
    while sampler.writes():
        seen.together.append(len(sampler._batching.versions()))
        before = time.process_time()
        ended = sampler.step()
        seen.steps.append(1000 * (time.process_time() - before))
        for _, answer in ended:
            if isinstance(answer, Exception):
                raise answer
            written += len(answer.tokens)
            ask()
    seen.tokens.append(written / max(time.process_time() - began, 1e-6))


def table(name: str, model: Path, repeats: int, rounds: int) -> Iterator[list[str]]:
    """A row a count; they take turns, each behind a round with one adapter."""
    sampler = sampler_of(name, model)
    load(sampler, max(COUNTS))
    seen, alone = ({count: Round() for count in COUNTS} for _ in range(2))
    for repeat in range(repeats + 1):
        for count in COUNTS:
            for of, many in ((alone[count], 1), (seen[count], count)):
                if repeat:
                    measure(sampler, many, rounds * CHATS, of, repeat)
                else:
                    measure(sampler, many, CHATS, Round(), repeat)  # to warm up
    for count in COUNTS:
        many, one = seen[count], alone[count]
        share = median(here / there for here, there in zip(many.tokens, one.tokens, strict=True))
        last, lone = (quantiles(of.steps, n=100)[98] for of in (many, one))
        yield [
            name,
            f"{count:,}",
            f"{median(many.together):.0f}",
            f"{median(many.tokens):,.0f}",
            f"{share:.2f}",
            f"{median(many.steps):.1f} ({median(one.steps):.1f})",
            f"{last:.1f} ({lone:.1f})",
            f"{100 * (last / lone - 1):+.0f} %",
        ]
