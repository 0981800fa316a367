# SPDX-License-Identifier: Apache-2.0
"""A worker whose backend needs real memory for every token that goes through at once, and has little.

Run as `python -m tests.training.greedy train FACTORY`, as a daemon starts a worker. The limit on its
address space is set once everything is imported.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.api.sampler import TokenizedTurn
from goodbot_training.process import worker

ROOM = 256 << 20
"""Bytes that are left."""
TOKEN = 1 << 20
"""Bytes that a token takes."""


class Greedy:
    """Enough of a `TrainingBackend` for a round that changes nothing."""

    name = "greedy"
    parameters = 1

    def load(self, *args: Any, **kwargs: Any) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + ROOM
        _, most = resource.getrlimit(resource.RLIMIT_AS)  # the cage may have set one already
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))

    def tokenize(self, messages: Any, response: str) -> TokenizedTurn:
        return TokenizedTurn(prompt=(1,) * 50, response=(2,) * 50)

    def logprobs(self, batch: Sequence[TokenizedTurn], **kwargs: Any) -> list[Any]:
        return [np.full(len(turn.response), -1.0, np.float32) for turn in batch]

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        for _ in batches:
            np.ones(settings.tokens_per_forward * TOKEN, np.uint8)
            yield StepStats.nothing()

    def save_checkpoint(self, directory: Path) -> None: ...

    def load_adapter(self, directory: Path | None) -> None: ...

    def save_adapter(self, directory: Path) -> None:
        directory.mkdir()


if __name__ == "__main__":
    sys.exit(worker.main(sys.argv[1:]))
