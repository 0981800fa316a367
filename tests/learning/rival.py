# SPDX-License-Identifier: Apache-2.0
"""ReinforceClaw 0.1.0's and OpenClaw-RL's losses and advantages, from their published formulas."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from goodbot_training.objectives import Objective, make_objective
from goodbot_training.objectives.mispo import detach
from goodbot_training.round import run as training_round


@contextmanager
def trained_like(rival: str) -> Generator[None]:
    """Every round inside trains with the loss of `reinforceclaw` or `openclaw`."""

    def made(settings: Any) -> Objective:
        if rival == "openclaw":
            return Objective(openclaw, as_rated, hindsight=True)
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
    xp: Any,
    policy_logprobs: Any,
    sampling_logprobs: Any,
    reference_logprobs: Any,
    advantages: Any,
    mask: Any,
    normalizer: float,
) -> Any:
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
    return loss, _statistics(xp, d, mask, scale)


def as_rated(baseline: Any, rewards: Any, weights: Any) -> Any:
    """Without a baseline: A is the rating itself."""
    return list(rewards), baseline


def openclaw(
    xp: Any,
    policy_logprobs: Any,
    sampling_logprobs: Any,
    reference_logprobs: Any,
    advantages: Any,
    mask: Any,
    normalizer: float,
    hindsight: Any = None,
) -> Any:
    """Its combined loss; its newer one picks among hints.

    A_t = rating + (log π_T - log π_old) of the words, PPO's minimum with 0.2 and 0.28, a mean over each
    answer's own tokens, no KL.
    """
    a = advantages[:, None] + (0.0 if hindsight is None else hindsight)
    ratio = xp.exp((policy_logprobs - sampling_logprobs) * mask)
    least = xp.minimum(ratio * a, xp.clip(ratio, 0.8, 1.28) * a)
    lengths = xp.clip(mask.sum(axis=1), 1.0, None)
    loss = -((least * mask).sum(axis=1) / lengths).sum() / len(advantages)
    return loss, _statistics(xp, (reference_logprobs - policy_logprobs) * mask, mask, mask[:, 0])


def _statistics(xp: Any, d: Any, mask: Any, accepted: Any) -> dict[str, Any]:
    d = detach(xp, d)
    return {
        "kl": (xp.exp(d) - d - 1.0).sum(),
        "tokens_accepted": mask.sum(),
        "trajectories_accepted": detach(xp, accepted).sum(),
    }
