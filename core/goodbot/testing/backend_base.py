# SPDX-License-Identifier: Apache-2.0
"""The ground that the backend suite stands on: fixtures, losses, batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodbot.api.backend import LoraSettings, OptimizerSettings, StepStats, TrainingBackend, TrainingBatch
from goodbot.api.sampler import TokenizedTurn

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
TEXTS = ("Paris.", "Arr matey! It be Paris, I tell ye.")
LORA = LoraSettings(rank=4, alpha=8.0)
FILES = ("adapter_model.safetensors", "adapter_config.json")


def policy_gradient(
    xp: Any, policy: Any, sampling: Any, reference: Any, advantages: Any, mask: Any, normalizer: Any
) -> tuple[Any, dict[str, Any]]:
    """A plain objective: -Σ A · log π / N."""
    loss = -(policy * mask * advantages[:, None]).sum() / normalizer
    zero = (mask * 0.0).sum()
    return loss, {"kl": zero, "tokens_accepted": mask.sum(), "trajectories_accepted": zero}


def poisoned(*arguments: Any) -> tuple[Any, dict[str, Any]]:
    """An objective whose loss is not a number."""
    loss, statistics = policy_gradient(*arguments)
    return loss * float("nan"), statistics


class BackendGround:
    """What all suites of a backend share."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend_factory(cls) -> Callable[[], TrainingBackend]:
        """What makes an unloaded backend."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def model_dir(cls) -> Path:
        """A local model directory."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def loaded(cls, backend_factory: Callable[[], TrainingBackend], model_dir: Path) -> TrainingBackend:
        """One backend for the class; `backend` sets it back for each test."""
        backend = backend_factory()
        backend.load(model_dir, lora=LORA, seed=3)
        return backend

    @pytest.fixture
    def backend(self, loaded: TrainingBackend) -> TrainingBackend:
        """A loaded backend with a fresh adapter."""
        loaded.load_adapter(None)
        return loaded

    @pytest.fixture
    def turns(self, backend: TrainingBackend) -> list[TokenizedTurn]:
        """Two turns of different length."""
        return [backend.tokenize(MESSAGES, text) for text in TEXTS]

    def batch_of(
        self, backend: TrainingBackend, turns: Sequence[TokenizedTurn], advantages: list[float]
    ) -> TrainingBatch:
        """Make a batch of whole answers, none of which weighs more than the others.

        Args:
            backend: Not asked.
            turns: The answers.
            advantages: One for each answer.

        Returns:
            Its arrays are of the shape `(answers, tokens of the longest)`; all log-probabilities are 0.
        """
        width = max(len(turn.response) for turn in turns)
        mask = np.zeros((len(turns), width), np.float32)
        for row, turn in enumerate(turns):
            mask[row, : len(turn.response)] = 1.0
        return TrainingBatch(
            sequences=tuple(turns),
            temperature=(1.0,) * len(turns),
            sampling_logprobs=np.zeros_like(mask),
            reference_logprobs=np.zeros_like(mask),
            advantages=np.asarray(advantages, np.float32),
            mask=mask,
            normalizer=float(mask.sum()),
        )

    def trained(
        self,
        backend: TrainingBackend,
        turns: Sequence[TokenizedTurn],
        advantages: list[float],
        *,
        steps: int = 3,
        tokens_per_forward: int = 8192,
    ) -> list[StepStats]:
        """Train on one batch again and again.

        Args:
            backend: A loaded backend.
            turns: The answers.
            advantages: One for each answer.
            steps: How many steps.
            tokens_per_forward: How many tokens a forward pass takes at most.

        Returns:
            What each step reports.
        """
        batch = self.batch_of(backend, turns, advantages)
        settings = OptimizerSettings(tokens_per_forward=tokens_per_forward)
        return list(backend.train(iter([batch] * steps), settings, policy_gradient))

    def scores(
        self, backend: TrainingBackend, turns: Sequence[TokenizedTurn], *, adapter: bool = True
    ) -> list[Any]:
        """Compute log-probabilities at temperature 1.

        Args:
            backend: A loaded backend.
            turns: The answers.
            adapter: Whether with the adapter, or as the base.

        Returns:
            An array for each answer, of the shape `(its tokens,)`.
        """
        return backend.logprobs(turns, temperature=[1.0] * len(turns), adapter=adapter)

    def same(self, left: list[Any], right: list[Any], *, exactly: bool = False) -> None:
        """Compare two lists of arrays, and fail where they differ.

        Args:
            left: The one.
            right: The other, of the same shapes.
            exactly: To the bit, in place of to 1e-5.
        """
        for one, other in zip(left, right, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=0 if exactly else 1e-5)


def files(directory: Path) -> list[bytes]:
    """The bytes of an adapter's files."""
    return [(directory / name).read_bytes() for name in FILES]
