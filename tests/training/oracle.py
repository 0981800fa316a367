# SPDX-License-Identifier: Apache-2.0
"""One small batch, the same for all tests of the objective and of parity. NumPy, float64 or 32."""

from __future__ import annotations

from typing import Any

import numpy as np
from goodbot.api.backend import TrainingBatch
from goodbot.api.sampler import TokenizedTurn
from goodbot_training.objectives.mispo import VARIANTS as MADE
from goodbot_training.objectives.mispo import MisPo

ROWS, WIDTH = 4, 6
VARIANTS = tuple(MADE)


def arrays(dtype: Any = np.float64, *, seed: int = 3, spread: float = 0.5) -> dict[str, Any]:
    """Log-probs around -1.5, ratios on both sides of the bands, two padded rows."""
    random = np.random.default_rng(seed)
    mask = np.ones((ROWS, WIDTH))
    mask[1, 4:] = 0
    mask[3, 1:] = 0
    sampling = -1.5 + 0.5 * random.standard_normal((ROWS, WIDTH))
    policy = sampling + spread * random.standard_normal((ROWS, WIDTH))
    policy[0] = sampling[0] + 0.0005 * random.standard_normal(WIDTH)  # inside the paper's band
    reference = sampling + 0.3 * random.standard_normal((ROWS, WIDTH))
    return {
        "policy_logprobs": (policy * mask).astype(dtype),
        "sampling_logprobs": (sampling * mask).astype(dtype),
        "reference_logprobs": (reference * mask).astype(dtype),
        "advantages": np.asarray([1.2, -0.8, 0.5, -0.3], dtype),
        "mask": mask.astype(dtype),
    }


def objective(variant: str, *, kl: float = 0.1) -> MisPo:
    """A variant with bands that some but not all of `arrays` lie in."""
    return MisPo(
        variant=variant, token_low=0.7, token_high=1.4, trajectory_low=0.8, trajectory_high=1.25, kl=kl
    )


def batch(turns: list[TokenizedTurn], sampling: list[Any], reference: list[Any]) -> TrainingBatch:
    """A batch whose behaviour policy is a little off what the model says now."""
    width = max(len(turn.response) for turn in turns)
    random = np.random.default_rng(1)
    filled = {name: np.zeros((len(turns), width), np.float32) for name in ("s", "r", "m")}
    for row, turn in enumerate(turns):
        length = len(turn.response)
        noise = 0.2 * random.standard_normal(length)
        filled["s"][row, :length] = sampling[row] + noise
        filled["r"][row, :length] = reference[row]
        filled["m"][row, :length] = 1
    advantages = np.where(np.arange(len(turns)) % 2, -0.7, 1.0).astype(np.float32)
    return TrainingBatch(
        sequences=tuple(turns),
        temperature=(0.8,) * len(turns),
        sampling_logprobs=filled["s"],
        reference_logprobs=filled["r"],
        advantages=advantages,
        mask=filled["m"],
        normalizer=float(filled["m"].sum()),
    )
